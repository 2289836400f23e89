import { setEnabled, make, put } from '../../arena-pages/elements.js';

/**
 * Adds a number with two buttons that change it by steps. For keys and screen readers it is a spin button: arrows are
 * steps, Home and End the least and the most.
 *
 * @param {HTMLElement} root
 * @param {object} how
 * @param {string} how.name
 * @param {string} how.title
 * @param {number[]} how.values rising
 * @param {(value: number) => void} how.choose called with a new value; `show` sets the valid one
 * @returns {{show: (value: number) => void}}
 */
export function stepper(root, { name, title, values, choose }) {
  const box = make('div', { className: 'stepper', 'data-name': name, into: root });
  const label = make('p', { text: title, id: `step-${name}`, into: box });
  const step = (text, words) =>
    make('button', { className: 'step', text, 'aria-label': `${words}: ${title}`, into: box });
  const less = step('−', 'Less');
  const spin = make('output', {
    role: 'spinbutton',
    tabindex: 0,
    'aria-labelledby': label.id,
    'aria-valuemin': values[0],
    'aria-valuemax': values.at(-1),
    into: box
  });
  const more = step('+', 'More');
  let current = 0;

  const up = () => values.find((value) => value > current) ?? values.at(-1);
  const down = () => values.findLast((value) => value < current) ?? values[0];
  const KEYS = {
    ArrowUp: up,
    ArrowRight: up,
    ArrowDown: down,
    ArrowLeft: down,
    Home: () => values[0],
    End: () => values.at(-1)
  };

  function go(value) {
    if (value === current) return;
    show(value);
    choose(value);
  }

  function show(value) {
    current = value;
    put(spin, value.toLocaleString('en'));
    spin.setAttribute('aria-valuenow', value);
    setEnabled(less, value > values[0]);
    setEnabled(more, value < values.at(-1));
  }

  more.addEventListener('click', () => go(up()));
  less.addEventListener('click', () => go(down()));
  spin.addEventListener('keydown', (event) => {
    const keyAction = KEYS[event.key];
    if (keyAction === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    go(keyAction());
  });
  return { show };
}
