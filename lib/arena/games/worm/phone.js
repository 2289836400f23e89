import { canvasIn, make, style } from '../../arena-pages/elements.js';
import { thumb } from '../../arena-pages/thumb.js';
import { drawFace } from './face.js';

/** The worm on the phone: a face to push up or down. */

const moodWords = (mood) => (mood > 0.15 ? 'glad' : mood < -0.15 ? 'sad' : 'so-so');

export function start({ root, send, input: { mood = 0 } }) {
  const sheet = style(import.meta.url);
  const pad = make('div', { className: 'worm-pad', into: root });
  make('i', { className: 'rail', into: pad });
  make('p', { className: 'end', text: 'Great', into: pad });
  make('p', { className: 'hint', text: 'Not at all', into: pad });
  const grip = make('div', { className: 'grip', into: pad });
  const { fit } = canvasIn(grip, 'A face');
  const moodOf = (value) => value * 2 - 1;

  const thumbState = thumb(pad, {
    label: 'How do you feel?',
    value: (mood + 1) / 2,
    onMove(value) {
      send({ mood: moodOf(value) });
      draw();
    },
    words: (value) => moodWords(moodOf(value))
  });

  function draw() {
    const { ctx, width, height } = fit();
    const radius = Math.min(width, height) / 2;
    drawFace(ctx, { x: width / 2, y: height / 2, radius, mood: moodOf(thumbState.value) });
  }

  const resizeObserver = new ResizeObserver(draw);
  resizeObserver.observe(grip);

  return {
    result({ value }) {
      const mood = value.line.reduce((sum, one) => sum + one, 0) / (value.line.length || 1);
      return {
        title: 'Thank you',
        text: `All the time together, the room was ${moodWords(mood / 100)}.`
      };
    },
    stop() {
      resizeObserver.disconnect();
      sheet.remove();
    }
  };
}
