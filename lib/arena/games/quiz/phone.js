import { setEnabled, make, put, style } from '../../arena-pages/elements.js';
import { formatPoints, ordinal, readStandings } from './standings.js';

/** The quiz on the phone: a button for each answer. The last tap before the time is over counts. */

/** Seconds before the end at which a screen reader says how many are left. */
const ANNOUNCED_SECONDS = [10, 5];

/** Replaces the buttons of the choices. */
function showChoices(choices, answers, choose) {
  const focused = choices.contains(document.activeElement);
  choices.replaceChildren();
  for (const [at, answer] of answers.entries()) {
    const button = make('button', { className: 'choice', 'data-at': at, into: choices });
    make('b', { text: String.fromCharCode(65 + at), into: button });
    make('span', { text: answer, into: button });
    button.addEventListener('click', () => choose(at));
  }
  if (focused) choices.firstElementChild?.focus(); // Keeps the focus in the answers, for players with a keyboard.
}

function markChoice(choices, chosen) {
  for (const [at, one] of [...choices.children].entries()) {
    one.setAttribute('aria-pressed', at === chosen);
  }
}

function showTime(clock, announcement, { left, right }) {
  const isOpen = right === undefined;
  clock.hidden = !isOpen;
  put(clock, left);
  clock.setAttribute('aria-label', `${left} seconds left`);
  clock.dataset.soon = left <= ANNOUNCED_SECONDS.at(-1);
  put(announcement, isOpen && ANNOUNCED_SECONDS.includes(left) ? `${left} seconds left` : '');
}

/** Returns the number of players in the standings, and the entry of one of them. */
function standingOf(standings, number) {
  const list = readStandings(standings);
  return { of: list.length, own: list.find((one) => one.number === number) };
}

/** Returns the words on a player's choice, and on the place that it has brought. */
function verdictOf({ own, of }, pointsBefore, chosen, right) {
  const gained = own && pointsBefore !== undefined ? own.points - pointsBefore : 0;
  const place = own ? ` You are ${ordinal(own.place)} of ${of}.` : '';
  // The points decide: after a reload the choice may be unknown.
  if (gained > 0) return `Right! ${formatPoints(gained)} points.${place}`;
  if (own && pointsBefore === undefined) return place.trim();
  const words = chosen !== right ? 'Not this time.' : own ? 'Right, but too late.' : 'Right!';
  return `${chosen < 0 ? 'Not answered.' : words}${place}`;
}

export function start({ root, send, number, input }) {
  const sheet = style(import.meta.url);
  const quiz = make('div', { className: 'quiz phone-quiz cover', into: root });
  const head = make('div', { className: 'head', into: quiz });
  const questionLine = make('p', { className: 'ask', role: 'status', into: head });
  const clock = make('p', { className: 'time', role: 'timer', into: head });
  const choices = make('div', { className: 'choices', role: 'group', into: quiz });
  const verdict = make('p', { className: 'verdict', role: 'status', into: quiz });
  const timeAnnouncement = make('p', { className: 'unseen', role: 'status', into: quiz });
  let shownQuestion = ''; // round and question of the buttons
  let shownTexts = ''; // the same, with the texts of question and answers
  let index = -1;
  let chosen = -1;
  let pointsBefore; // undefined if this page was loaded while an answer was shown

  function choose(at) {
    if (quiz.dataset.open === 'false') return; // The time is over.
    chosen = at;
    send({ question: index, choice: at });
    markChoice(choices, chosen);
    put(verdict, 'You may change your mind');
  }

  function showAnswer({ right, standings }) {
    const standing = standingOf(standings, number);
    quiz.dataset.open = right === undefined;
    for (const [at, one] of [...choices.children].entries()) {
      setEnabled(one, right === undefined);
      if (at === right) one.dataset.right = '';
    }
    if (right !== undefined) return put(verdict, verdictOf(standing, pointsBefore, chosen, right));
    pointsBefore = standing.own?.points ?? 0;
    return put(verdict, chosen < 0 ? 'Tap an answer' : 'You may change your mind');
  }

  return {
    value({ round, value }) {
      if (!value || value.asked) return;
      const questionKey = `${round} ${value.index}`;
      if (questionKey !== shownQuestion)
        chosen = input.question === value.index ? input.choice : -1;
      const words = JSON.stringify([questionKey, value.question, value.answers]);
      if (words !== shownTexts) {
        index = value.index;
        put(questionLine, value.question);
        quiz.scrollTop = 0;
        showChoices(choices, value.answers, choose);
        markChoice(choices, chosen);
      }
      shownQuestion = questionKey;
      shownTexts = words;
      showTime(clock, timeAnnouncement, value);
      showAnswer(value);
    },
    result({ value }) {
      const { own, of } = standingOf(value.standings, number);
      if (own === undefined) return { title: 'The quiz is over' };
      const rightWords = value.asked ? `${own.right} of ${value.asked.length} right, ` : '';
      return {
        title: `You are ${ordinal(own.place)} of ${of}`,
        text: `${rightWords}${formatPoints(own.points)} points`
      };
    },
    stop: () => sheet.remove()
  };
}
