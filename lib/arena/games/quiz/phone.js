import { make, put, style } from '../../arena-pages/elements.js';

/** The quiz on the phone: a button for each answer. The last tap before the time is over counts. */

export function start({ root, send }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'quiz phone-quiz', into: root });
  const ask = make('p', { className: 'ask', attributes: { role: 'status' }, into: quiz });
  const choices = make('div', { className: 'choices', attributes: { role: 'group' }, into: quiz });
  const verdict = make('p', { className: 'verdict', attributes: { role: 'status' }, into: quiz });
  let shown = ''; // round and question that there are buttons for
  let index = -1;
  let chosen = -1;
  let counted = ''; // the question whose verdict is in the points
  let points = 0;

  function choose(at) {
    if (quiz.dataset.open === 'false') return; // The time is over.
    chosen = at;
    send({ question: index, choice: at });
    mark();
    put(verdict, 'You may change your mind');
  }

  function mark() {
    if (chosen < 0) delete quiz.dataset.chosen;
    else quiz.dataset.chosen = chosen;
    for (const [at, one] of [...choices.children].entries()) {
      one.setAttribute('aria-pressed', at === chosen);
    }
  }

  function build({ question, answers }) {
    put(ask, question);
    const focused = choices.contains(document.activeElement);
    choices.replaceChildren();
    for (const [at, answer] of answers.entries()) {
      const attributes = { type: 'button', 'data-at': at };
      const button = make('button', { className: 'choice', attributes, into: choices });
      make('b', { text: String.fromCharCode(65 + at), into: button });
      make('span', { text: answer, into: button });
      button.addEventListener('click', () => choose(at));
    }
    if (focused) choices.firstElementChild?.focus(); // Who plays by key goes on there.
  }

  function showAnswer({ right }) {
    quiz.dataset.open = right === undefined;
    for (const [at, one] of [...choices.children].entries()) {
      // Not `disabled`: that would take the focus away.
      one.setAttribute('aria-disabled', right !== undefined);
      if (at === right) one.dataset.right = '';
    }
    if (right === undefined)
      return put(verdict, chosen < 0 ? 'Tap an answer' : 'You may change your mind');
    if (counted !== shown) points += chosen === right ? 1 : 0;
    counted = shown;
    const words = chosen < 0 ? 'Not answered.' : chosen === right ? 'Right!' : 'Not this time.';
    return put(verdict, `${words} ${points} so far`);
  }

  return {
    value({ round, value }) {
      if (!value) return;
      if (value.shares) return;
      const now = `${round} ${value.index}`;
      if (now !== shown) {
        if (shown.split(' ')[0] !== String(round)) points = 0;
        shown = now;
        index = value.index;
        chosen = -1;
        build(value);
        mark();
      }
      showAnswer(value);
    },
    result({ value }) {
      if (!value?.shares) return undefined;
      return { title: `${points} of ${value.shares.length} right`, text: '' };
    },
    stop: () => sheet.remove()
  };
}
