import { put } from './elements.js';
import { sleep } from '../page/reload.js';
import { sendRequest } from './room.js';
import { readStorage, writeStorage } from '../page/store.js';

/**
 * The name of a phone on the big screen. The page asks for it once, the browser's storage keeps it, and the page sends
 * it to the server for each new player.
 */

const KEY = 'sprites.name';

/** Longest name, in code points, as in lib/arena/names.js. A code point may be two characters of an input field. */
const MAX_LENGTH = 24;

/** Delay before the first retry, in milliseconds, by which each further delay grows; and most attempts. */
const RETRY_DELAY = 2000;
const MAX_ATTEMPTS = 5;

const TRYING = 'Trying again…';

export class NameForm {
  #element;
  #name = String(readStorage('localStorage', KEY) ?? '');
  #isFormOpen = this.#name === '';
  /** URL for the player's name; and the name that the server has accepted there. */
  #url;
  #acceptedName = '';
  #sendCount = 0;

  /** @param {(id: string) => HTMLElement} element the page's elements */
  constructor(element) {
    this.#element = element;
    element('naming').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit(this.#typedName);
    });
    element('name-change').addEventListener('click', () => {
      this.#isFormOpen = true;
      this.#show();
      element('name').select();
      element('name').focus();
    });
    element('name').value = this.#name;
    this.#show();
  }

  /** The text of the input field, with spaces normalized as on the server. */
  get #typedName() {
    return this.#element('name').value.trim().replace(/\s+/g, ' ');
  }

  /** Moves the question for the name to the lobby or the result. @param {HTMLElement} section */
  moveTo(section) {
    if (this.#element('who').parentElement !== section) section.append(this.#element('who'));
  }

  /** Sends the name of a player, which may be a new one. @param {string} url where to POST the name */
  setPlayer(url) {
    const isSamePlayer = url === this.#url;
    this.#url = url;
    if (!isSamePlayer) this.#acceptedName = '';
    this.#show();
    if (this.#name !== '' && this.#acceptedName !== this.#name) this.#send(this.#name);
  }

  #submit(name) {
    const { length } = [...name];
    if (length < 1 || length > MAX_LENGTH)
      return put(this.#element('name-wrong'), `Write a name, of up to ${MAX_LENGTH} characters.`);
    return this.#send(name, true);
  }

  /** Sends a name to the server. Stores an accepted name, and shows why another is refused. */
  async #send(name, isSubmitted = false) {
    const sendNumber = ++this.#sendCount;
    const headers = { 'Content-Type': 'text/plain;charset=UTF-8' }; // needs no preflight
    const request = { method: 'POST', headers, body: JSON.stringify({ name }) };
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const { status, json } = await sendRequest(this.#url, request);
      if (sendNumber !== this.#sendCount) return;
      if (status === 204) return this.#acceptName(name, isSubmitted);
      if (status === 400 && json) return this.#showRefusal(name, json.detail);
      this.#tell(name, TRYING);
      await sleep(attempt * RETRY_DELAY);
      if (sendNumber !== this.#sendCount) return;
    }
    this.#showRefusal(name, 'The server did not take it. Try again.');
  }

  #acceptName(name, isSubmitted) {
    this.#name = name;
    this.#acceptedName = name;
    writeStorage('localStorage', KEY, name); // Without storage the next tab asks again.
    // The name of a new player may be sent while another one is being typed, or is about to be.
    const hadFocus = this.#element('naming').contains(document.activeElement);
    this.#isFormOpen = this.#typedName !== name || (hadFocus && !isSubmitted);
    this.#tell(name, '');
    this.#show();
    if (hadFocus && !this.#isFormOpen) this.#element('name-change').focus();
  }

  #showRefusal(name, words) {
    this.#isFormOpen = true;
    this.#show();
    this.#tell(name, words);
  }

  /** Shows words about a name. Words about another text in the field stay. */
  #tell(name, words) {
    const wrong = this.#element('name-wrong');
    const isTyped = this.#typedName === name;
    if (isTyped || wrong.textContent === TRYING) put(wrong, isTyped ? words : '');
  }

  #show() {
    const hasPlayer = this.#url !== undefined;
    this.#element('naming').hidden = !hasPlayer || !this.#isFormOpen;
    this.#element('named').hidden = !hasPlayer || this.#isFormOpen;
    put(this.#element('named-words'), `You are ${this.#name}`);
  }
}
