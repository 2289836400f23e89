import { make, put } from '../../arena-pages/elements.js';
import { many, nameOf, ordinal, readStandings } from './standings.js';

/** The result on the big screen: the podium, the next places, and the questions with their right answers. */

const PODIUM = 3;
const LISTED = 8; // players on podium and list

/** How long one screenful of questions is shown, in milliseconds. */
const STAY = 9000;

/** Adds a player to the podium or the list. */
function entryOf(into, reduced, { number, points, place }) {
  const entry = make('li', { attributes: { 'data-place': place }, into });
  make('b', { className: 'place', text: ordinal(place), into: entry });
  make('span', { className: 'who', text: nameOf(reduced, number), into: entry });
  make('span', { className: 'points', text: many(points), into: entry });
}

/**
 * @param {HTMLElement} root
 * @returns {{show: (reduced: object) => void, turn: (now: number) => void}} `turn`, to be called each frame,
 *     shows the next screenful of questions when it is due
 */
export function showResult(root) {
  const title = make('h2', {
    className: 'big',
    into: make('div', { attributes: { role: 'status' }, into: root })
  });
  const list = (className, label) =>
    make('ol', { className, attributes: { 'aria-label': label }, into: root });
  const podium = list('podium', 'Podium');
  const rest = list('rest', 'Then');
  const table = list('asked', 'What was asked');
  let shown = '';
  let asked = [];
  let from = 0; // the first question shown
  let end = 0; // the question after the last one shown
  let due = 0;

  const isFull = () => table.scrollHeight > table.clientHeight;

  function showAsked(first) {
    from = first;
    end = first;
    table.replaceChildren();
    table.start = from + 1;
    while (end < asked.length && !isFull()) {
      const { question, answer, share } = asked[end];
      const one = make('li', { into: table });
      make('span', { className: 'question', text: question, into: one });
      make('b', { className: 'answer', text: answer, into: one });
      make('span', { className: 'share', text: `${share} % knew it`, into: one });
      end += 1;
    }
    if (!isFull() || end === from + 1) return;
    table.lastElementChild.remove();
    end -= 1;
  }

  return {
    show(reduced) {
      const { value, names } = reduced;
      const players = readStandings(value.standings);
      const words = JSON.stringify([value.standings, value.asked, names]);
      if (words === shown) return;
      shown = words;
      const [winner] = players;
      const first = players.filter(({ place }) => place === 1).length;
      put(
        title,
        winner === undefined || winner.points === 0
          ? 'The quiz is over'
          : first > 1
            ? `${first} have won`
            : `${nameOf(reduced, winner.number)} has won`
      );
      podium.replaceChildren();
      for (const one of players.slice(0, PODIUM)) entryOf(podium, reduced, one);
      rest.replaceChildren();
      for (const one of players.slice(PODIUM, LISTED)) entryOf(rest, reduced, one);
      asked = value.asked ?? [];
      showAsked(0);
    },
    turn(now) {
      if (now < due) return;
      const isAll = from === 0 && end === asked.length && !isFull();
      if (due > 0 && !isAll) showAsked(end < asked.length ? end : 0);
      due = now + STAY;
    }
  };
}
