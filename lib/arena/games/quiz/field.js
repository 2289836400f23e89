import { make, put, style } from '../../arena-pages/elements.js';
import { showResult } from './result.js';
import { many, nameOf, readStandings } from './standings.js';

/** The quiz on the big screen: a question with its time, then the count of each answer; at the end the result. */

/** Number of leaders shown between two questions. */
const FRONT = 3;

/** Smallest size of question and answers, as a share of their usual size; and factor from one size to the next. */
const LEAST = 0.3;
const SMALLER = 0.92;

function questionOf(root) {
  const top = make('p', { className: 'top', into: root });
  const parts = {
    place: make('span', { into: top }),
    answered: make('span', { into: top }),
    question: make('h2', {
      className: 'big',
      into: make('div', { attributes: { role: 'status' }, into: root })
    }),
    bars: make('div', { className: 'bars', into: root }),
    front: make('p', { className: 'front', into: root }),
    time: make('p', { className: 'time', attributes: { role: 'timer' }, into: root }),
    clock: make('div', { className: 'clock', attributes: { 'aria-hidden': true }, into: root })
  };
  make('i', { into: parts.clock });
  return parts;
}

export function start({ root, control: { page: begun } }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'quiz field-quiz cover', into: root });
  const { place, answered, question, bars, front, time, clock } = questionOf(quiz);
  const result = make('div', { className: 'quiz result-quiz cover', into: root });
  const results = showResult(result);
  const watch = new ResizeObserver(() => fit());
  watch.observe(quiz);
  let page = begun; // the control's page
  let last = null;
  let texts = '';
  let fitted = ''; // the texts and the answer for which the letters have their size

  function build({ index, question: asked, answers }) {
    const words = JSON.stringify([index, asked, answers]);
    if (words === texts) return;
    texts = words;
    bars.replaceChildren();
    for (const [at, text] of answers.entries()) {
      const bar = make('div', { className: 'bar', attributes: { 'data-at': at }, into: bars });
      make('i', { into: bar });
      make('b', { text: String.fromCharCode(65 + at), into: bar });
      make('span', { text, into: bar });
      make('b', { className: 'count', into: bar });
    }
  }

  /** Makes the letters smaller until all answers fit. */
  function fit() {
    const isCut = ({ scrollHeight, clientHeight }) => scrollHeight > clientHeight;
    for (let size = 1; size > LEAST; size *= SMALLER) {
      quiz.style.setProperty('--fit', size);
      if (![...bars.children].some(isCut)) return;
    }
  }

  /** Shows the counts of the answers, once the right one is known: earlier, players would choose what others choose. */
  function fill({ right, counts = [] }) {
    quiz.dataset.open = right === undefined;
    const most = Math.max(1, ...counts);
    for (const [at, bar] of [...bars.children].entries()) {
      bar.toggleAttribute('data-right', at === right);
      bar.style.setProperty('--share', (counts[at] ?? 0) / most);
      put(bar.lastChild, counts[at] ?? '');
    }
  }

  function showQuestion(reduced) {
    const { players, value } = reduced;
    const { index, of, right, left, seconds, standings } = value;
    put(place, `Question ${index + 1} of ${of}`);
    put(answered, `${value.answered} of ${players} have answered`);
    put(question, value.question);
    build(value);
    fill(value);
    if (fitted !== `${texts} ${right}`) fit();
    fitted = `${texts} ${right}`;
    const isOpen = right === undefined;
    put(time, left);
    time.hidden = !isOpen;
    time.setAttribute('aria-label', `${left} seconds left`);
    clock.style.setProperty('--left', Math.min(1, left / seconds));
    const first = readStandings(standings)
      .slice(0, FRONT)
      .filter(({ points }) => points > 0);
    const words = first.map((one) => `${nameOf(reduced, one.number)} ${many(one.points)}`);
    put(front, isOpen || words.length === 0 ? '' : `In front: ${words.join(' · ')}`);
  }

  function show() {
    const value = last?.value;
    if (!value) return;
    const isResult = page === 'result' || value.asked !== undefined;
    quiz.hidden = isResult;
    result.hidden = !isResult;
    if (isResult) results.show(last);
    else showQuestion(last);
  }

  return {
    control(control) {
      ({ page } = control);
      show();
    },
    value(reduced) {
      last = reduced;
      show();
    },
    frame: (now) => results.turn(now),
    stop() {
      watch.disconnect();
      sheet.remove();
    }
  };
}
