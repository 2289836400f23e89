import { figures, make, put, style } from '../../arena-pages/elements.js';
import { Plot, Track } from '../../arena-pages/plots.js';
import { plural, formatText } from '../../arena-pages/units.js';

/** Load on the big screen: its amount, its latency, and the number of missing sprites. */

const POINT_INTERVAL = 1000; // ms between two points of the plot

const formatCount = (value) => formatText('count', value);

const FIGURES = [
  ['connections', ({ connections }) => formatCount(connections)],
  ['sprites a second', ({ perSecond }) => formatCount(perSecond)],
  ['99% arrive within', ({ p99, phone99 }) => formatText('time', p99 ?? phone99)],
  [
    'missing',
    ({ missing, torn }) => `${torn > 0 && missing > 0 ? '≤ ' : ''}${formatCount(missing)}`
  ]
];

const PLOT = {
  id: 'field-rate',
  title: 'Sprites a second',
  unit: 'count',
  most: 10,
  series: [{ name: 'perSecond', words: 'now', color: 'self' }]
};

export function start({ root, control }) {
  const sheet = style(import.meta.url);
  const region = { tabindex: 0, role: 'region', 'aria-label': 'Load' };
  const box = make('div', { className: 'load-field cover', ...region, into: root });
  const tiles = make('dl', { className: 'load-tiles', into: box });
  const show = figures(tiles, FIGURES);
  const carriers = make('p', { className: 'load-who', into: box });
  const track = new Track(['perSecond']);
  let { running } = control;
  let value = null;
  let round = null;
  let beganAt = performance.now();
  const plot = new Plot(
    make('div', { className: 'load-big', into: box }),
    PLOT,
    track,
    Math.max(160, root.clientHeight * 0.42)
  );

  const timer = setInterval(() => {
    if (value === null || !running) return;
    track.add((performance.now() - beganAt) / 1000, value);
    plot.show();
  }, POINT_INTERVAL);

  return {
    control: (next) => ({ running } = next),
    value(reduced) {
      if (reduced.round !== round) {
        track.clear();
        beganAt = performance.now();
      }
      ({ value, round } = reduced);
      if (value === null) return;
      show(value);
      tiles.lastChild.dataset.is = value.missing === 0 ? 'good' : 'bad';
      put(
        carriers,
        `${plural(value.machines, 'machine')} and ${plural(value.phones, 'phone')} carry it`
      );
    },
    stop() {
      clearInterval(timer);
      plot.remove();
      sheet.remove();
    }
  };
}
