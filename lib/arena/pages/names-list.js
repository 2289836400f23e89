import { make, put } from './elements.js';

/** The names on the panel: a click puts one away, or brings it back. */

/** Names that are shown: those on the screen first, then the newest. */
const MOST = 200;

export class NamesList {
  #root;
  #names = [];
  #shown = new Set();

  /** What the list is of; 0: nothing yet. */
  version = 0;

  /**
   * @param {HTMLElement} root
   * @param {(number: number, away: boolean) => void} choose
   */
  constructor(root, choose) {
    this.#root = root;
    root.addEventListener('click', ({ target }) => {
      const chip = target.closest('button');
      if (chip) choose(Number(chip.dataset.value), chip.getAttribute('aria-pressed') !== 'true');
    });
  }

  /** @param {{version: number, names?: {number: number, name: string, away: boolean}[]}} look as the server says */
  show({ version, names }) {
    this.version = version;
    if (names === undefined) return;
    this.#names = names;
    this.#draw();
  }

  /** @param {Record<string, string>} [names] that are on the big screen now */
  onScreen(names = {}) {
    const shown = new Set(Object.keys(names).map(Number));
    const isSame =
      shown.size === this.#shown.size && [...shown].every((one) => this.#shown.has(one));
    if (isSame) return;
    this.#shown = shown;
    this.#draw();
  }

  #draw() {
    const first = ({ number }) => (this.#shown.has(number) ? 1 : 0);
    const list = this.#names.toSorted((a, b) => first(b) - first(a) || b.number - a.number);
    const sheet = this.#root.closest('section');
    sheet.hidden = list.length === 0;
    const focused = this.#root.contains(document.activeElement)
      ? document.activeElement.dataset.value
      : undefined;
    this.#root.replaceChildren();
    for (const { number, name, away } of list.slice(0, MOST)) {
      const attributes = { type: 'button', 'data-value': number, 'aria-pressed': away };
      const chip = make('button', { className: 'chip', attributes, into: this.#root });
      make('span', { className: 'unseen', text: `Put away player ${number}: `, into: chip });
      make('span', { className: 'called', text: name, into: chip });
      if (focused === String(number)) chip.focus();
    }
    const older = list.length - MOST;
    put(sheet.querySelector('.older'), older > 0 ? `And ${older} older ones.` : '');
  }
}
