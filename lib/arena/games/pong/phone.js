import { make, style } from '../../arena-pages/elements.js';
import { thumb } from '../../arena-pages/thumb.js';

/** Pong on the phone: the whole screen is the paddle's track, in the color of the player's half. */

export function start({ root, send, number, input: { y = 0.5 } }) {
  const side = number % 2 === 1 ? 'left' : 'right';
  const sheet = style(import.meta.url);
  const pad = make('div', { className: `pong-pad ${side}`, into: root });
  make('i', { className: 'rail', into: pad });
  make('i', { className: 'grip', into: pad });
  make('p', {
    className: 'end side',
    text: side === 'left' ? '← You are left' : 'You are right →',
    into: pad
  });
  make('p', {
    className: 'hint',
    text: 'Drag up and down. Your half moves by the mean of all its thumbs.',
    into: pad
  });
  thumb(pad, {
    label: `The ${side} paddle`,
    value: 1 - y,
    onMove: (value) => send({ y: 1 - value }),
    words: (value) => `${Math.round(value * 100)} of 100 up`
  });
  return {
    result({ value: { score } }) {
      const [mine, theirs] = side === 'left' ? score : score.toReversed();
      if (mine === theirs) return undefined;
      const title = mine > theirs ? 'Your half has won!' : 'The other half has won';
      return { title, text: `${mine} to ${theirs}` };
    },
    stop: () => sheet.remove()
  };
}
