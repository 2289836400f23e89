import { readFileSync, readdirSync } from 'node:fs';

import { template } from '../report/page.js';
import { readServedFile, servedFile } from '../base/page-files.js';

/**
 * The pages of the arena and the files of its games, in the form that lib/base/page-files.js serves.
 */

const PAGES = new URL('pages/', import.meta.url);

/** The pages, by the first segment of their path; and the page of `sprites play`. */
const PAGE_FILES = { play: 'phone.html', field: 'field.html', control: 'panel.html' };
const TRIAL_FILES = { try: 'try.html' };
export const ARENA_PAGES = Object.keys(PAGE_FILES);

/** The start of every page. HTML allows the end tag of the head to be omitted. */
const HEAD = 'head.html';

/** The third-party library for plots. */
const PLOT_FILES = { '/uplot.js': 'uPlot.esm.js', '/uplot.css': 'uPlot.min.css' };

/** The modules of lib/report with which a panel makes a report. */
const REPORT_FOLDER = new URL('../report/', import.meta.url);
const REPORT_MODULES = ['language.js', 'page-parts.js', 'report-body.js', 'words.js'];

/**
 * @param {{arena: string[], play?: object}} options the arenas' names; `play` for `sprites play`
 * @param {Map<string, import('./games.js').Game>} games
 * @returns {Map<string, ReturnType<typeof servedFile>>} by path; empty without an arena
 */
export function arenaFiles({ arena: arenas, play }, games) {
  const files = new Map();
  const add = (path, file) => file !== undefined && files.set(path, file);
  if (arenas.length === 0) return files;
  for (const name of readdirSync(PAGES)) {
    if (!name.endsWith('.html'))
      add(`/arena-pages/${name}`, readServedFile(name, new URL(name, PAGES)));
  }
  const head = readFileSync(new URL(HEAD, PAGES));
  for (const [segment, name] of Object.entries({ ...PAGE_FILES, ...(play && TRIAL_FILES) })) {
    const page = servedFile(name, Buffer.concat([head, readFileSync(new URL(name, PAGES))]));
    for (const arena of arenas) add(`/${segment}/${arena}`, page);
  }
  for (const [path, name] of Object.entries(PLOT_FILES)) {
    add(path, readServedFile(path, new URL(name, import.meta.resolve('uplot'))));
  }
  for (const name of REPORT_MODULES)
    add(`/swarm/${name}`, readServedFile(name, new URL(name, REPORT_FOLDER)));
  // The template of reports. Served as plain text, since it is not a page of this server.
  const type = 'text/plain; charset=utf-8';
  add('/swarm/report.txt', servedFile('report.txt', Buffer.from(template()), type));
  for (const game of games.values()) {
    for (const [name, { type, body }] of game.files) {
      const file = servedFile(name, body, type);
      if (game.version === null) add(`/games/${game.name}/${name}`, file);
      else {
        // Also by version: a browser loads a module only once per address.
        add(`/games/${game.name}/${name}`, { ...file, changes: true });
        add(`/games/${game.name}~${game.version}/${name}`, { ...file, changes: true });
      }
    }
  }
  return files;
}
