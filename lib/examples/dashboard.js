import { freemem, hostname, loadavg, totalmem } from 'node:os';

import { openSite } from './site.js';

/**
 * A dashboard: the figures of this machine, once a second, and the last minute of each.
 *
 *     node lib/examples/dashboard.js
 */

const MAX_VALUES = 60;

const share = (part, whole) => Math.round((1000 * part) / whole) / 10;

/** The figures: a title, and a function that reads the value. */
const FIGURES = {
  'Load of the last minute': () => Math.round(loadavg()[0] * 100) / 100,
  'Memory in use, %': () => share(totalmem() - freemem(), totalmem()),
  'Memory of this program, MB': () => Math.round(process.memoryUsage.rss() / 1e6)
};

const sprites = await openSite(new URL('dashboard.html', import.meta.url));
const figures = Object.keys(FIGURES).map((title) => ({ title, values: [] }));
setInterval(async () => {
  for (const { title, values } of figures) {
    values.push(FIGURES[title]());
    values.splice(0, values.length - MAX_VALUES);
  }
  // Each page gets only the patch: it removes each figure's oldest value and adds the newest.
  await sprites.publish('dashboard', { host: hostname(), figures });
}, 1000);
