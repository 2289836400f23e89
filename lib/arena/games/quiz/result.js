import { make, put } from '../../arena-pages/elements.js';
import { formatPoints, nameOf, ordinal, readStandings } from './standings.js';

/** The result on the big screen: the podium, the next places, and the questions with their right answers. */

const PODIUM = 3;
const MAX_LISTED = 8; // players on podium and list

/** How long one screenful of questions is shown, in milliseconds. */
const PAGE_TIME = 9000;

/** Adds a player to the podium or the list. */
function addEntry(into, reduced, { number, points, place }) {
  const entry = make('li', { 'data-place': place, into });
  make('b', { className: 'place', text: ordinal(place), into: entry });
  make('span', { className: 'who', text: nameOf(reduced, number), into: entry });
  make('span', { className: 'points', text: formatPoints(points), into: entry });
}

/**
 * @param {HTMLElement} root
 * @returns {{show: (reduced: object) => void, turn: (now: number) => void}} `turn`, to be called each frame,
 *     shows the next screenful of questions when it is due
 */
export function showResult(root) {
  const title = make('h2', { className: 'big', into: make('div', { role: 'status', into: root }) });
  const list = (className, label) => make('ol', { className, 'aria-label': label, into: root });
  const podium = list('podium', 'Podium');
  const others = list('rest', 'Then');
  const table = list('asked', 'What was asked');
  let shownText = '';
  let questions = [];
  let firstShown = 0; // the first question shown
  let endShown = 0; // the question after the last one shown
  let nextTurnAt = 0;

  const isFull = () => table.scrollHeight > table.clientHeight;

  function showQuestions(first) {
    firstShown = first;
    endShown = first;
    table.replaceChildren();
    table.start = firstShown + 1;
    while (endShown < questions.length && !isFull()) {
      const { question, answer, share } = questions[endShown];
      const item = make('li', { into: table });
      make('span', { className: 'question', text: question, into: item });
      make('b', { className: 'answer', text: answer, into: item });
      make('span', { className: 'share', text: `${share} % knew it`, into: item });
      endShown += 1;
    }
    if (!isFull() || endShown === firstShown + 1) return;
    table.lastElementChild.remove();
    endShown -= 1;
  }

  return {
    show(reduced) {
      const { value, names } = reduced;
      const players = readStandings(value.standings);
      const words = JSON.stringify([value.standings, value.asked, names]);
      if (words === shownText) return;
      shownText = words;
      const [winner] = players;
      const winners = players.filter(({ place }) => place === 1).length;
      put(
        title,
        winner === undefined || winner.points === 0
          ? 'The quiz is over'
          : winners > 1
            ? `${winners} have won`
            : `${nameOf(reduced, winner.number)} has won`
      );
      podium.replaceChildren();
      for (const one of players.slice(0, PODIUM)) addEntry(podium, reduced, one);
      others.replaceChildren();
      for (const one of players.slice(PODIUM, MAX_LISTED)) addEntry(others, reduced, one);
      questions = value.asked ?? [];
      showQuestions(0);
    },
    turn(now) {
      if (now < nextTurnAt) return;
      const isWholeShown = firstShown === 0 && endShown === questions.length && !isFull();
      if (nextTurnAt > 0 && !isWholeShown)
        showQuestions(endShown < questions.length ? endShown : 0);
      nextTurnAt = now + PAGE_TIME;
    }
  };
}
