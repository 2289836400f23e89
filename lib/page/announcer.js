/**
 * What the page says: to everybody, in a toast that goes again, and to who listens, by a live region.
 */

const TOAST_TIME = 3500; // ms
const PAUSE = 700; // ms between two news at the least, however much there is
const TOGETHER = 3; // news that are said in one go; of more the newest

export class Announcer {
  #toast;
  #news;
  #home;
  #toastTimer = 0;
  #offered = null;
  #pending = new Map(); // texts by their subject, the newest last
  #hearing = 0;

  /**
   * @param {HTMLElement} toast is shown while it says something
   * @param {HTMLElement} news a live region
   * @param {HTMLElement} home gets the focus from a button that goes
   */
  constructor(toast, news, home) {
    this.#toast = toast;
    this.#news = news;
    this.#home = home;
  }

  /** For everybody to see, for a while. */
  say(text) {
    this.#show(text, TOAST_TIME);
    this.hear(text);
  }

  /**
   * Says something, with a button that does something about it.
   *
   * @param {string} text
   * @param {string} action what the button says
   * @param {number} time ms it can be seen
   * @param {{act: () => void, key: string}} how what it does; the key that does the same, in words
   */
  offer(text, action, time, { act, key }) {
    this.#show(text, time);
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'act';
    button.textContent = action;
    button.addEventListener('click', () => {
      this.withdraw(act);
      act();
    });
    this.#toast.append(' ', button);
    this.#offered = act;
    this.hear(`${text} ${action} with ${key}.`);
  }

  /** What was offered has been done in another way, or can't be done any more: its button goes. */
  withdraw(act) {
    if (this.#offered === act) this.#hide();
  }

  #hide() {
    this.#offered = null;
    if (this.#toast.contains(document.activeElement)) this.#home.focus({ preventScroll: true });
    this.#toast.hidden = true;
  }

  #show(text, time) {
    this.#offered = null;
    this.#toast.textContent = text;
    this.#toast.hidden = false;
    clearTimeout(this.#toastTimer);
    this.#toastTimer = setTimeout(() => this.#hide(), time);
  }

  /**
   * For who listens.
   *
   * @param {string} text
   * @param {string} [subject] what is not said yet about it is replaced
   */
  hear(text, subject = text) {
    this.#pending.delete(subject);
    this.#pending.set(subject, text);
    if (this.#hearing) return;
    this.#hearing = setTimeout(() => {
      this.#hearing = 0;
      this.#news.textContent = [...this.#pending.values()].slice(-TOGETHER).join(' ');
      this.#pending.clear();
    }, PAUSE);
  }
}
