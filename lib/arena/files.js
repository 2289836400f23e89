import { readFileSync, readdirSync } from 'node:fs';

import { template } from '../report/page.js';
import { fileAt, fileOf } from '../base/page-files.js';

/**
 * The pages of the arena and the files of its games, as lib/base/page-files.js serves them.
 */

const PAGES = new URL('pages/', import.meta.url);

/** The page at a path, by what the path begins with; that of a game that is tried. */
const AT = { play: 'phone.html', field: 'field.html', control: 'panel.html' };
const TRIED = { try: 'try.html' };

/** What every page begins with: where the head ends HTML need not say. */
const HEAD = 'head.html';

/** The plots' library, as others have made it. */
const PLOTS = { '/uplot.js': 'uPlot.esm.js', '/uplot.css': 'uPlot.min.css' };

/** What a panel makes a report with: lib/report's modules, and the page that they fill. */
const SWARM = new URL('../report/', import.meta.url);
const REPORT = ['language.js', 'page-parts.js', 'report-body.js', 'words.js'];

/**
 * @param {{arena: string[], play?: object}} options the arenas' names; `play` where a game is tried
 * @param {Map<string, import('./games.js').Game>} games
 * @returns {Map<string, ReturnType<typeof fileOf>>} by path; empty where there is no arena
 */
export function arenaFiles({ arena: arenas, play }, games) {
  const files = new Map();
  const add = (path, file) => file !== undefined && files.set(path, file);
  if (arenas.length === 0) return files;
  for (const name of readdirSync(PAGES)) {
    if (!name.endsWith('.html')) add(`/arena-pages/${name}`, fileAt(name, new URL(name, PAGES)));
  }
  for (const [place, name] of Object.entries({ ...AT, ...(play && TRIED) })) {
    const parts = [HEAD, name].map((part) => readFileSync(new URL(part, PAGES)));
    const page = fileOf(name, Buffer.concat(parts));
    for (const arena of arenas) add(`/${place}/${arena}`, page);
  }
  for (const [path, name] of Object.entries(PLOTS)) {
    add(path, fileAt(path, new URL(name, import.meta.resolve('uplot'))));
  }
  for (const name of REPORT) add(`/swarm/${name}`, fileAt(name, new URL(name, SWARM)));
  // As plain text: it is no page of this server's.
  const type = 'text/plain; charset=utf-8';
  add('/swarm/report.txt', fileOf('report.txt', Buffer.from(template()), type));
  for (const game of games.values()) {
    for (const [name, { type, body }] of game.files) {
      const file = fileOf(name, body, type);
      if (game.version === null) add(`/games/${game.name}/${name}`, file);
      else {
        // By its version as well: a browser asks for a module once, by its address.
        add(`/games/${game.name}/${name}`, { ...file, changes: true });
        add(`/games/${game.name}~${game.version}/${name}`, { ...file, changes: true });
      }
    }
  }
  return files;
}
