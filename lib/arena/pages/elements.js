/** Elements, made by script: the pages' Content-Security-Policy lets none be written into them as text. */

/**
 * @param {string} tag a `button` submits nothing unless its attributes say so
 * @param {object} [how]
 * @param {string} [how.className]
 * @param {string} [how.text]
 * @param {Record<string, string|number>} [how.attributes]
 * @param {Element} [how.into] its parent
 * @returns {HTMLElement}
 */
export function make(tag, { className = '', text = '', attributes = {}, into } = {}) {
  const element = document.createElement(tag);
  if (tag === 'button') element.type = 'button';
  if (className) element.className = className;
  if (text !== '') element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  into?.append(element);
  return element;
}

/**
 * A game's own style sheet, beside its module: `style(import.meta.url)` is its `style.css`.
 *
 * @param {string} module its URL
 * @returns {HTMLElement} to be removed when the game ends
 */
export function style(module) {
  const href = new URL('style.css', module).href;
  return make('link', { attributes: { rel: 'stylesheet', href }, into: document.head });
}

/** Puts a text where another one is; the same one is left alone, so that no screen reader repeats it. */
export function put(element, text) {
  const words = String(text);
  if (element.textContent !== words) element.textContent = words;
}

/**
 * Figures, each with its words: a `div` of `dt` and `dd` in a list of definitions.
 *
 * @template Look
 * @param {HTMLElement} list a `dl`
 * @param {[string, (look: Look) => string|number][]} shown the words, and how the figure is found in a look; one of NaN is a dash
 * @returns {(look: Look) => void} shows them
 */
export function figures(list, shown) {
  const values = shown.map(([title]) => {
    const one = make('div', { into: list });
    make('dt', { text: title, into: one });
    return make('dd', { text: '–', into: one });
  });
  return (look) => {
    for (const [i, [, read]] of shown.entries()) {
      const text = String(read(look));
      put(values[i], text.includes('NaN') ? '–' : text);
    }
  };
}

/** Says whether a button can do something now. Not by `disabled`: that would take the focus away. */
export const allow = (button, isAllowed) => button.setAttribute('aria-disabled', !isAllowed);

/** The colors that were asked for, until others hold: no frame asks the style again. */
const known = new Map();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => known.clear());

/** @returns {(name: string) => string} the page's colors, by their custom property's name */
export function palette() {
  return (name) => {
    if (known.has(name)) return known.get(name);
    const style = getComputedStyle(document.documentElement);
    const color = style.getPropertyValue(`--${name}`).trim();
    if (color !== '') known.set(name, color); // Else the style sheet is not there yet.
    return color;
  };
}

/**
 * A canvas that fills an element, in the screen's own pixels.
 *
 * @param {HTMLElement} root
 * @param {string} label what it shows, for screen readers
 * @returns {{canvas: HTMLElement, fit: () => {ctx: CanvasRenderingContext2D, width: number, height: number}}}
 *     `fit` is called before each drawing: sizes in CSS pixels
 */
export function canvasIn(root, label) {
  const canvas = make('canvas', { attributes: { role: 'img', 'aria-label': label }, into: root });
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
