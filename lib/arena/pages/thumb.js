/**
 * A vertical slider for one thumb. The whole element is the track, except for a margin at both ends, which a thumb
 * does not reach well. Keys work as in every slider.
 */

const MARGIN = 0.14; // of the element's height, at each end
const STEP = 0.05;
const STRIDE = 0.25;

const KEYS = new Map([
  ['ArrowUp', STEP],
  ['ArrowRight', STEP],
  ['ArrowDown', -STEP],
  ['ArrowLeft', -STEP],
  ['PageUp', STRIDE],
  ['PageDown', -STRIDE],
  ['Home', -1],
  ['End', 1]
]);

/**
 * Makes an element such a slider.
 *
 * @param {HTMLElement} element
 * @param {object} how
 * @param {string} how.label the thing that it moves, for screen readers
 * @param {number} [how.value] 0 at the lower end, 1 at the upper
 * @param {(value: number) => void} how.onMove
 * @param {(value: number) => string} [how.words] returns a value in words, for screen readers
 * @returns {{value: number}} always the current value
 */
export function thumb(element, { label, value = 0.5, onMove, words }) {
  const state = { value };
  const showValue = () => {
    element.setAttribute('aria-valuenow', Math.round(state.value * 100));
    if (words) element.setAttribute('aria-valuetext', words(state.value));
    element.style.setProperty('--value', state.value);
  };
  const move = (to) => {
    state.value = Math.min(1, Math.max(0, to));
    showValue();
    onMove(state.value);
  };
  for (const [name, text] of [
    ['role', 'slider'],
    ['tabindex', 0],
    ['aria-label', label],
    ['aria-orientation', 'vertical'],
    ['aria-valuemin', 0],
    ['aria-valuemax', 100]
  ]) {
    element.setAttribute(name, text);
  }
  element.classList.add('thumb');
  element.style.setProperty('--margin', MARGIN);
  showValue();

  const follow = (event) => {
    const { bottom, height } = element.getBoundingClientRect();
    move(((bottom - event.clientY) / height - MARGIN) / (1 - 2 * MARGIN));
  };
  let thumbId; // of the finger that was put down last: another one may rest on the screen
  element.addEventListener('pointerdown', (event) => {
    thumbId = event.pointerId;
    element.setPointerCapture(thumbId);
    element.dataset.held = '';
    follow(event);
  });
  element.addEventListener('pointermove', (event) => {
    if (event.pointerId === thumbId && element.hasPointerCapture(thumbId)) follow(event);
  });
  for (const end of ['pointerup', 'pointercancel']) {
    element.addEventListener(end, (event) => {
      if (event.pointerId === thumbId) delete element.dataset.held;
    });
  }
  element.addEventListener('keydown', (event) => {
    const change = KEYS.get(event.key);
    if (change === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(state.value + change);
  });
  element.addEventListener('contextmenu', (event) => event.preventDefault());
  return state;
}
