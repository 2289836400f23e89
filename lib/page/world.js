import { drawRing, longWords, readWorld, shortWords } from './ring.js';

/** The world that this desktop's server is in, above the map: seen only where there is one. */
export class WorldView {
  #box;
  #ring;
  #words;
  #announcer;
  #shown = '';

  /**
   * @param {HTMLElement} box with an svg and a p in it
   * @param {import('./announcer.js').Announcer} announcer
   */
  constructor(box, announcer) {
    this.#box = box;
    this.#ring = box.querySelector('svg');
    this.#words = box.querySelector('p');
    this.#announcer = announcer;
  }

  /** @param {{world?: unknown, worldServers?: number}} status what /status says */
  show({ world: value, worldServers }) {
    const world = readWorld(value);
    this.#box.hidden = world === null;
    if (!world) return;
    const news = JSON.stringify([world, worldServers]);
    if (news === this.#shown) return;
    const isFirst = this.#shown === '';
    this.#shown = news;
    drawRing(this.#ring, world);
    const text = longWords(world, worldServers);
    // Rows come and go all the time; the number of desktops is news.
    const short = shortWords(world, worldServers);
    if (!isFirst && short !== this.#words.textContent) this.#announcer.hear(text, 'world');
    this.#ring.setAttribute('aria-label', text);
    this.#words.textContent = short;
  }
}
