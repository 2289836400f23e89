/** A bot in the quiz: it thinks for a while, and guesses. */

const ANSWER_SHARE = 0.06; // share of moves in which it answers

export function play({ value, random }) {
  const isOpen = value?.answers && value.right === undefined;
  if (!isOpen || random() > ANSWER_SHARE) return undefined;
  return { question: value.index, choice: Math.floor(random() * value.answers.length) };
}
