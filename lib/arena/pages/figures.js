import { make, put } from './elements.js';

/** The server's counts as figures: what has happened each second since the last look. */

const MEGABYTE = 2 ** 20;

const whole = (value) => Math.round(value).toLocaleString('en');

/** What is shown: its words, and how it is found in a look and the difference to the one before. */
const SHOWN = [
  ['Players here', ({ players }) => whole(players)],
  ['Inputs a second', ({ each }) => whole(each('inputs'))],
  ['Reductions a second', ({ each }) => whole(each('reductions'))],
  ['CPU of one core', ({ each }) => `${whole(each('cpuSeconds') * 100)} %`],
  ['Memory', ({ status }) => `${whole(status.rss / MEGABYTE)} MB`],
  ['Longest stall, last minute', ({ status }) => `${Number(status.recentStallMs).toFixed(1)} ms`]
];

export class Figures {
  #root;
  #last = null;

  /** @param {HTMLElement} root a list of definitions */
  constructor(root) {
    this.#root = root;
    for (const [title] of SHOWN) {
      const one = make('div', { into: root });
      make('dt', { text: title, into: one });
      make('dd', { text: '–', into: one });
    }
  }

  /**
   * @param {object} status what the server says
   * @param {{players: number, now: number}} look players of this arena; ms
   */
  show(status, { players, now }) {
    const last = this.#last;
    this.#last = { status, now };
    const each = (name) =>
      last ? ((status[name] - last.status[name]) * 1000) / (now - last.now) : NaN;
    for (const [i, [, read]] of SHOWN.entries()) {
      const text = read({ status, players, each });
      put(this.#root.children[i].lastChild, text.includes('NaN') ? '–' : text);
    }
  }
}
