import { figures, make, put, style } from '../../arena-pages/elements.js';
import { arenaName, base, grantOption } from '../../arena-pages/room.js';
import { formatText } from '../../arena-pages/units.js';
import { Polls } from './polls.js';

/** Load on the phone: the page parks a few polls at its server, and throws sprites to the other clients. */

const REPORT_INTERVAL = 1000; // ms between two reports

const FIGURES = [
  ['Polls held', ({ connections }) => connections],
  ['Sprites thrown', ({ accepted }) => accepted.toLocaleString('en')],
  ['Came in', ({ received }) => received.toLocaleString('en')],
  ['Throw to answer', ({ p50 }) => formatText('time', p50 < 0 ? null : p50)]
];

export function start({ root, send, number, control: startControl }) {
  const sheet = style(import.meta.url);
  const box = make('div', { className: 'load-phone cover', into: root });
  const words = make('p', { className: 'load-words', role: 'status', into: box });
  const show = figures(make('dl', { into: box }), FIGURES);
  let control = startControl;
  let batch = 0;
  let polls = null;
  let round = null;

  /** Starts, steers or stops the polls. Each round has its own polls, and its own name for its sprites. */
  function steerPolls() {
    if (round !== control.round || !control.running) {
      polls?.stop();
      polls = null;
    }
    round = control.round;
    if (!control.running || batch === 0) return;
    polls ??= new Polls({ ...grantOption, base, name: `${arenaName()}.${round}`, number });
    const { polls: wantedPolls, phoneThrows } = control.settings;
    polls.steer({ polls: wantedPolls, throws: phoneThrows, batch });
    put(
      words,
      wantedPolls > 0
        ? 'This phone carries a part of the load'
        : 'This phone has nothing to carry now'
    );
  }

  function report() {
    if (polls === null) return;
    const latest = polls.report();
    send({ round, machine: 0, bounded: 0, done: 0, ...latest });
    const counts = { ...latest, ...polls.sums };
    show(counts);
    root.dataset.thrown = counts.accepted;
    root.dataset.connections = latest.connections;
  }

  /** Removes the page's clients when the page goes away. */
  const leave = () => polls?.leaveUrls.forEach((url) => navigator.sendBeacon(url));
  const timer = setInterval(report, REPORT_INTERVAL);
  addEventListener('pagehide', leave);
  put(words, 'Waiting for the panel');

  return {
    control(next) {
      control = next;
      if (control.round !== round) batch = 0;
      if (!control.running) put(words, 'Waiting for the panel');
      steerPolls();
    },
    value(reduced) {
      if (reduced.round !== control.round || !(reduced.value?.batch > 0)) return;
      batch = reduced.value.batch;
      steerPolls();
    },
    stop() {
      clearInterval(timer);
      removeEventListener('pagehide', leave);
      polls?.stop();
      sheet.remove();
    }
  };
}
