/** Checks the questions of content.json and of the panel. */

/** Most answers of a question, as in inputs.json; longest text, in characters; most questions. */
export const ANSWERS = 6;
export const CHARACTERS = 200;
const QUESTIONS = 1000;

const isText = (text) =>
  typeof text === 'string' && text.trim() !== '' && text.length <= CHARACTERS;

/** Returns the mistake in a question, in words; undefined for a valid question. */
function mistakeIn({ question, answers, right } = {}) {
  if (!isText(question)) return `needs a question of 1 to ${CHARACTERS} characters`;
  const hasAnswers =
    Array.isArray(answers) &&
    answers.length >= 2 &&
    answers.length <= ANSWERS &&
    answers.every(isText);
  if (!hasAnswers) return `needs 2 to ${ANSWERS} answers of 1 to ${CHARACTERS} characters`;
  const hasRight = Number.isInteger(right) && right >= 0 && right < answers.length;
  return hasRight ? undefined : 'must say which answer is right: the first is 0';
}

/**
 * @param {unknown} value such as `[{"question":"…","answers":["…","…"],"right":1}]`
 * @returns {{question: string, answers: string[], right: number}[]}
 * @throws {Error} with the first mistake, in one line
 */
export function readQuestions(value) {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= QUESTIONS;
  if (!isList) throw new Error(`the questions must be a list of 1 to ${QUESTIONS}`);
  for (const [at, one] of value.entries()) {
    const words = mistakeIn(one ?? {});
    if (words !== undefined) throw new Error(`question ${at + 1} ${words}`);
  }
  return value;
}
