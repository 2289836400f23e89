import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';

import { readState, fillState, stateOptions } from '../../support/old-states.js';
import { temporary, Teardowns } from '../../support/processes.js';
import { startServer } from '../../support/server.js';
import { until } from '../../support/until.js';

/**
 * Makes a version of the server write a state, and records what that server has promised, for the tests of all later
 * versions:
 *
 *     node test/server/states/write.js CHECKOUT NAME [--crash]
 *
 * CHECKOUT is that version, built by `npm install`; NAME becomes one in states.json. `--crash` kills it at the end.
 */

/** Puts the server's clock far ahead, so that the ban still holds when the state is read. */
const LATER = `data:text/javascript,${encodeURIComponent('const { now } = Date; Date.now = () => now() + 3e12;')}`;

const [checkout, name, crash] = process.argv.slice(2);
const command = [process.execPath, '--import', LATER, join(resolve(checkout), 'bin/sprites')];
const teardowns = new Teardowns();
const folder = temporary(teardowns);
try {
  const options = stateOptions(folder);
  const server = await startServer(teardowns, { options, command });
  const asked = await fillState(server);
  if (crash) {
    asked.feeds = { 'league/table': null };
    asked.log.after = null;
  }
  const arena = join(folder, 'kept/state.arena');
  if (crash && existsSync(arena)) {
    // Version 0.1 wrote its arenas once a second, and its feeds only at an orderly end.
    asked.feeds = {};
    await until(() => /"values":\[0\.5\]/.test(readFileSync(arena, 'latin1')));
  }
  const seen = await readState(server, asked);
  if (crash) {
    server.child.kill('SIGKILL');
    await server.ended();
  } else await server.stop();
  const kept = readdirSync(join(folder, 'kept')).filter((one) => !one.endsWith('.lock'));
  const files = Object.fromEntries(
    kept.map((one) => [one, readFileSync(join(folder, 'kept', one), 'base64')])
  );
  const all = new URL('states.json', import.meta.url);
  const states = { ...JSON.parse(readFileSync(all)), [name]: { asked, seen, files } };
  writeFileSync(all, `${JSON.stringify(states)}\n`);
} finally {
  await teardowns.end();
}
