import { existsSync, readdirSync } from 'node:fs';

import { template } from '../swarm/page.js';
import { fileAt, fileOf } from '../server/page-files.js';

/**
 * The pages of the arena and the files of its games, as lib/server/page-files.js serves them.
 */

const PAGES = new URL('pages/', import.meta.url);

/** What plays: the phone's page, and lib/swarm's agents. It is here, where its way to lib/client is a page's, too. */
const PLAYER = new URL('player.js', import.meta.url);

/** The page at a path, by what the path begins with. */
const AT = { play: 'phone.html', field: 'field.html', control: 'panel.html' };

/** The plots' library, as others have made it. */
const PLOTS = { '/uplot.js': 'uPlot.esm.js', '/uplot.css': 'uPlot.min.css' };

/** What a panel makes a report with: lib/swarm's own modules, and the page that they fill. */
const SWARM = new URL('../swarm/', import.meta.url);
const REPORT = ['page-parts.js', 'report-body.js', 'report-charts.js', 'words.js'];

/**
 * @param {string[]} arenas their names
 * @param {Map<string, import('./games.js').Game>} games
 * @returns {Map<string, ReturnType<typeof fileOf>>} by path; empty where there is no arena
 */
export function arenaFiles(arenas, games) {
  const files = new Map();
  const add = (path, file) => file !== undefined && files.set(path, file);
  if (arenas.length === 0) return files;
  for (const name of existsSync(PAGES) ? readdirSync(PAGES) : []) {
    add(`/arena-pages/${name}`, fileAt(name, new URL(name, PAGES)));
  }
  add('/arena-pages/player.js', fileAt('player.js', PLAYER));
  for (const [place, name] of Object.entries(AT)) {
    const page = files.get(`/arena-pages/${name}`);
    files.delete(`/arena-pages/${name}`);
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
