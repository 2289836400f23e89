import { put } from './elements.js';
import { ask, pause } from './room.js';
import { read, write } from '../page/store.js';

/**
 * The name of a phone on the big screen. The page asks for it once, the browser's storage keeps it, and the page sends
 * it to the server for each new player.
 */

const KEY = 'sprites.name';

/** Longest name, in code points, as in lib/arena/names.js. A code point may be two characters of an input field. */
const MOST = 24;

/** Delay before the first retry, in milliseconds, by which each further delay grows; and most attempts. */
const AGAIN = 2000;
const TIMES = 5;

export class Naming {
  #at;
  #name = String(read('localStorage', KEY) ?? '');
  #isAsked = this.#name === '';
  /** URL for the player's name; and the name that the server has accepted there. */
  #url;
  #told = '';
  #turn = 0;

  /** @param {(id: string) => HTMLElement} at the page's elements */
  constructor(at) {
    this.#at = at;
    at('naming').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#take(this.#written);
    });
    at('name-change').addEventListener('click', () => {
      this.#isAsked = true;
      this.#show();
      at('name').select();
      at('name').focus();
    });
    at('name').value = this.#name;
    this.#show();
  }

  /** The text of the input field, with spaces normalized as on the server. */
  get #written() {
    return this.#at('name').value.trim().replace(/\s+/g, ' ');
  }

  /** Moves the question for the name to the lobby or the result. @param {HTMLElement} section */
  moveTo(section) {
    if (this.#at('who').parentElement !== section) section.append(this.#at('who'));
  }

  /** Sends the name of a player, which may be a new one. @param {string} url where to POST the name */
  tell(url) {
    const isSame = url === this.#url;
    this.#url = url;
    if (!isSame) this.#told = '';
    this.#show();
    if (this.#name !== '' && this.#told !== this.#name) this.#send(this.#name);
  }

  #take(name) {
    const { length } = [...name];
    if (length < 1 || length > MOST)
      return put(this.#at('name-wrong'), `Write a name, of up to ${MOST} characters.`);
    return this.#send(name);
  }

  /** Sends a name to the server. Stores an accepted name, and shows why another is refused. */
  async #send(name) {
    const turn = ++this.#turn;
    const headers = { 'Content-Type': 'text/plain;charset=UTF-8' }; // needs no preflight
    const request = { method: 'POST', headers, body: JSON.stringify({ name }) };
    for (let times = 1; times <= TIMES; times += 1) {
      const { status, json } = await ask(this.#url, request);
      if (turn !== this.#turn) return;
      if (status === 204) return this.#be(name);
      if (status === 400 && json) return this.#refused(json.detail);
      put(this.#at('name-wrong'), 'Trying again…');
      await pause(times * AGAIN);
      if (turn !== this.#turn) return;
    }
    this.#refused('The server did not take it. Try again.');
  }

  #be(name) {
    this.#name = name;
    this.#told = name;
    // The name of a new player may be sent while another name is being typed.
    this.#isAsked = this.#written !== name;
    put(this.#at('name-wrong'), '');
    write('localStorage', KEY, name); // Without storage the next tab asks again.
    const hadFocus = this.#at('naming').contains(document.activeElement);
    this.#show();
    if (hadFocus && !this.#isAsked) this.#at('name-change').focus();
  }

  #refused(words) {
    this.#isAsked = true;
    this.#show();
    put(this.#at('name-wrong'), words);
  }

  #show() {
    const isIn = this.#url !== undefined;
    this.#at('naming').hidden = !isIn || !this.#isAsked;
    this.#at('named').hidden = !isIn || this.#isAsked;
    put(this.#at('named-words'), `You are ${this.#name}`);
  }
}
