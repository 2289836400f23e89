/**
 * Elements, made by script. No text is parsed as HTML, since names of players are untrusted; and the pages'
 * Content-Security-Policy forbids inline scripts and styles.
 */

/**
 * Makes an element. Further members of `how` are its attributes.
 *
 * @param {string} tag a `button` submits nothing unless its attributes say so
 * @param {object} [how]
 * @param {string} [how.className]
 * @param {string} [how.text]
 * @param {Element} [how.into] its parent
 * @returns {HTMLElement}
 */
export function make(tag, { className = '', text = '', into, ...attributes } = {}) {
  const element = document.createElement(tag);
  if (tag === 'button') element.type = 'button';
  if (className) element.className = className;
  if (text !== '') element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  into?.append(element);
  return element;
}

/**
 * Loads a game's own style sheet, beside its module: `style(import.meta.url)` loads its `style.css`.
 *
 * @param {string} module its URL
 * @returns {HTMLElement} its `link`, to be removed when the game ends
 */
export function style(module) {
  const href = new URL('style.css', module).href;
  return make('link', { rel: 'stylesheet', href, into: document.head });
}

/** Sets an element's text. Leaves an equal text alone, so that no screen reader repeats it. */
export function put(element, text) {
  const words = String(text);
  if (element.textContent !== words) element.textContent = words;
}

/**
 * Adds figures to a list of definitions: a `div` with title (`dt`) and value (`dd`) for each.
 *
 * @template Look
 * @param {HTMLElement} list a `dl`
 * @param {[string, (look: Look) => string|number][]} definitions title, and function of the value; NaN shows a dash
 * @returns {(look: Look) => void} shows the values of a look
 */
export function figures(list, definitions) {
  const values = definitions.map(([title]) => {
    const row = make('div', { into: list });
    make('dt', { text: title, into: row });
    return make('dd', { text: '–', into: row });
  });
  return (look) => {
    for (const [i, [, read]] of definitions.entries()) {
      const text = String(read(look));
      put(values[i], text.includes('NaN') ? '–' : text);
    }
  };
}

/** Enables or disables a button, by aria-disabled. Rejected: `disabled`, which would take the focus away. */
export const setEnabled = (button, isEnabled) => button.setAttribute('aria-disabled', !isEnabled);

/** Cache of colors, so that frames don't read the computed style. Cleared when the color scheme changes. */
const colorCache = new Map();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colorCache.clear());

/** @returns {(name: string) => string} a color of the page, by the name of its custom property */
export function palette() {
  return (name) => {
    if (colorCache.has(name)) return colorCache.get(name);
    const style = getComputedStyle(document.documentElement);
    const color = style.getPropertyValue(`--${name}`).trim();
    if (color !== '') colorCache.set(name, color); // Empty: the style sheet has not loaded yet.
    return color;
  };
}

/**
 * Adds a canvas that fills an element, in device pixels, at most two per CSS pixel.
 *
 * @param {HTMLElement} root
 * @param {string} label its content, for screen readers
 * @returns {{canvas: HTMLElement, fit: () => {ctx: CanvasRenderingContext2D, width: number, height: number}}}
 *     `fit` is to be called before each drawing: it clears the canvas, and returns its size in CSS pixels
 */
export function canvasIn(root, label) {
  const canvas = make('canvas', { role: 'img', 'aria-label': label, into: root });
  const ctx = canvas.getContext('2d');
  const fit = () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = Math.min(2, devicePixelRatio);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    return { ctx, width, height };
  };
  return { canvas, fit };
}
