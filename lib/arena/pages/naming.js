import { put } from './elements.js';
import { ask, pause } from './room.js';
import { read, write } from '../page/store.js';

/** The name that a phone has on the big screen: asked once, kept by the browser, told to the server for each player. */

const KEY = 'sprites.name';

/** Characters of a name, as in lib/arena/names.js: some take two of a field's. */
const MOST = 24;

/** Milliseconds until a name is told again that the server did not take just then: once more as long each time. */
const AGAIN = 2000;
const TIMES = 5;

export class Naming {
  #at;
  #name = String(read('localStorage', KEY) ?? '');
  #isAsked = this.#name === '';
  /** Where it was told last, and what. */
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

  /** What stands in the field, as the server takes it. */
  get #written() {
    return this.#at('name').value.trim().replace(/\s+/g, ' ');
  }

  /** Shows the question where it is wanted: in the lobby, or with the result. @param {HTMLElement} section */
  moveTo(section) {
    if (this.#at('who').parentElement !== section) section.append(this.#at('who'));
  }

  /** There is a player, perhaps another one than before. @param {string} url where to POST its name */
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

  /** Tells the server; a name that it takes is kept, one that it refuses is said. */
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
    // For another player it is told while the next one is being written.
    this.#isAsked = this.#written !== name;
    put(this.#at('name-wrong'), '');
    write('localStorage', KEY, name); // Where that is switched off, the next tab asks again.
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
