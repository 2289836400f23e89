import { make, put, style } from '../../arena-pages/elements.js';
import { showResult } from './result.js';
import { formatPoints, nameOf, readStandings } from './standings.js';

/** The quiz on the big screen: a question with its time, then the count of each answer; at the end the result. */

/** Number of leaders shown between two questions. */
const LEADERS = 3;

/** Smallest size of question and answers, as a share of their usual size; and factor from one size to the next. */
const MIN_SIZE = 0.3;
const SIZE_FACTOR = 0.92;

function addQuestionView(root) {
  const top = make('p', { className: 'top', into: root });
  const parts = {
    place: make('span', { into: top }),
    answered: make('span', { into: top }),
    question: make('h2', { className: 'big', into: make('div', { role: 'status', into: root }) }),
    bars: make('div', { className: 'bars', into: root }),
    front: make('p', { className: 'front', into: root }),
    time: make('p', { className: 'time', role: 'timer', into: root }),
    clock: make('div', { className: 'clock', 'aria-hidden': true, into: root })
  };
  make('i', { into: parts.clock });
  return parts;
}

/** Replaces the bars of the answers. */
function addBars(bars, answers) {
  bars.replaceChildren();
  for (const [at, text] of answers.entries()) {
    const bar = make('div', { className: 'bar', 'data-at': at, into: bars });
    make('i', { into: bar });
    make('b', { text: String.fromCharCode(65 + at), into: bar });
    make('span', { text, into: bar });
    make('b', { className: 'count', into: bar });
  }
}

/** Makes the letters of the quiz smaller until all answers fit. */
function fitBars(quiz, bars) {
  const isCut = ({ scrollHeight, clientHeight }) => scrollHeight > clientHeight;
  for (let size = 1; size > MIN_SIZE; size *= SIZE_FACTOR) {
    quiz.style.setProperty('--fit', size);
    if (![...bars.children].some(isCut)) return;
  }
}

/** Shows the counts of the answers, once the right one is known: earlier, players would choose what others choose. */
function showCounts(bars, { right, counts = [] }) {
  const largest = Math.max(1, ...counts);
  for (const [at, bar] of [...bars.children].entries()) {
    bar.toggleAttribute('data-right', at === right);
    bar.style.setProperty('--share', (counts[at] ?? 0) / largest);
    put(bar.lastChild, counts[at] ?? '');
  }
}

/** Returns the names and points of those in front, in words. */
function leaderWords(reduced) {
  return readStandings(reduced.value.standings)
    .slice(0, LEADERS)
    .filter(({ points }) => points > 0)
    .map(({ number, points }) => `${nameOf(reduced, number)} ${formatPoints(points)}`)
    .join(' · ');
}

export function start({ root, control: { page: startPage } }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'quiz field-quiz cover', into: root });
  const { place, answered, question, bars, front, time, clock } = addQuestionView(quiz);
  const resultBox = make('div', { className: 'quiz result-quiz cover', into: root });
  const resultView = showResult(resultBox);
  const resizeObserver = new ResizeObserver(() => fitBars(quiz, bars));
  resizeObserver.observe(quiz);
  let page = startPage; // the control's page
  let lastReduced = null;
  let shownTexts = '';
  let fittedTexts = ''; // the texts and the answer for which the letters have their size

  function showQuestion(reduced) {
    const { players, value } = reduced;
    const { index, of, right, left, seconds } = value;
    put(place, `Question ${index + 1} of ${of}`);
    put(answered, `${value.answered} of ${players} have answered`);
    put(question, value.question);
    const texts = JSON.stringify([index, value.question, value.answers]);
    if (texts !== shownTexts) addBars(bars, value.answers);
    shownTexts = texts;
    const isOpen = right === undefined;
    quiz.dataset.open = isOpen;
    showCounts(bars, value);
    if (fittedTexts !== `${texts} ${right}`) fitBars(quiz, bars);
    fittedTexts = `${texts} ${right}`;
    put(time, left);
    time.hidden = !isOpen;
    time.setAttribute('aria-label', `${left} seconds left`);
    clock.style.setProperty('--left', Math.min(1, left / seconds));
    const leaders = isOpen ? '' : leaderWords(reduced);
    put(front, leaders && `In front: ${leaders}`);
  }

  function show() {
    const value = lastReduced?.value;
    if (!value) return;
    const isResult = page === 'result' || value.asked !== undefined;
    quiz.hidden = isResult;
    resultBox.hidden = !isResult;
    if (isResult) resultView.show(lastReduced);
    else showQuestion(lastReduced);
  }

  return {
    control(control) {
      ({ page } = control);
      show();
    },
    value(reduced) {
      lastReduced = reduced;
      show();
    },
    frame: (now) => resultView.turn(now),
    stop() {
      resizeObserver.disconnect();
      sheet.remove();
    }
  };
}
