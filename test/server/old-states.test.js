import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import t from 'tap';

import { migrateOldState } from '../../lib/server/old-state.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { launchToEnd, SPRITES } from '../support/launch.js';
import { readState, stateOptions } from '../support/old-states.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';

/**
 * States of earlier versions: this version keeps all that they have promised (test/server/states/write.js).
 *
 *     files             552a78c, version 0.1: feeds, arena and bans in files beside the state
 *     one-journal       ec02156: one snapshot and one journal, before grants and logs
 *     grants-and-logs   version 0.2
 *     ….crash           after kill -9
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** By the name of each state its files, what to ask, and what is answered. */
const STATES = JSON.parse(readFileSync(new URL('states/states.json', import.meta.url)));
const NAMES = Object.keys(STATES);

/** The bytes of a state's file. */
const bytesOf = (name, file) => Buffer.from(STATES[name].files[file], 'base64');

/** The files that a state of version 0.1 has beside its own. */
const oldFilesOf = (name) =>
  Object.keys(STATES[name].files).filter((file) => /^state\.[a-z]+$/.test(file));

/** Copies a state into a folder of the test. */
function copyOf(t, name) {
  const options = stateOptions(temporary(t));
  const folder = dirname(options.state);
  for (const file of Object.keys(STATES[name].files)) {
    writeFileSync(join(folder, file), bytesOf(name, file));
  }
  return { options, folder };
}

const filesIn = (folder) =>
  Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')])
  );

/** Returns a file as a later version would write it. */
function asLaterVersion(file, bytes) {
  if (/\.(feeds|arena)$/.test(file))
    return Buffer.from(bytes.toString('latin1').replace(/ \d /, ' 9 '), 'latin1');
  if (/\.bans$/.test(file)) return Buffer.from('sprites-bans 9\n');
  const later = Buffer.from(bytes);
  later.writeUInt32LE(99, 8);
  return later;
}

const damaged = (file, bytes) =>
  /\.bans$/.test(file) ? bytes.subarray(0, 50) : bytes.fill(bytes[60] ^ 4, 60, 61);

t.test(
  'of the format that is written now there is a state, for the versions to come',
  async (t) => {
    const newest = (file, name) =>
      Number(new RegExp(` ${name} = (\\d+);`).exec(readFileSync(join(ROOT, 'native', file)))[1]);
    const written = (file) =>
      NAMES.filter((name) => file in STATES[name].files).map((name) =>
        bytesOf(name, file).readUInt32LE(8)
      );
    const snapshot = newest('store/snapshot_format.h', 'kVersion');
    t.ok(written('state').includes(snapshot), `snapshot ${snapshot}`);
    const journal = newest('base/journal_format.h', 'kJournalVersion');
    t.ok(written('state.journal-0').includes(journal), `journal ${journal}`);
  }
);

t.test(
  'of feeds what is no JSON is left out, as all of another run; damaged they are refused',
  async (t) => {
    const folder = temporary(t);
    const head = { epoch: 77, version: 5, patches: [], upstream: false, log: 0 };
    const values = { a: '{"a":1}', b: '{"a":undefined}' };
    const feeds = Object.entries(values).map(
      ([key, value]) => `${JSON.stringify({ ...head, key, value: value.length })}\n${value}`
    );
    const body = `sprites-feeds 2 7\n${feeds.join('')}`;
    const sha256 = createHash('sha256').update(body).digest('hex');
    const whole = `${body}${JSON.stringify({ end: 2, sha256 })}\n`;
    const path = join(folder, 'state');
    writeFileSync(`${path}.feeds`, whole);
    const log = { warn() {}, error() {} };
    const migrateFor = (runBefore) =>
      migrateOldState({ path, pool: {}, maxBytes: 10_000, runBefore, log });
    t.match(migrateFor(7), { feeds: [{ key: 'a', epoch: 77, version: 5 }], files: [{}] });
    t.equal(migrateFor(7).feeds.length, 1);
    t.match(migrateFor(8), { feeds: undefined, files: [{}] });
    writeFileSync(`${path}.feeds`, whole.replace(sha256, '0'.repeat(64)));
    t.throws(() => migrateFor(7), /state\.feeds: it is damaged$/);
  }
);

/**
 * Returns the command of a server that is killed while it takes a state over: before the new state is written (step 0), or
 * before one of the old files is renamed to FILE.previous.
 */
function killedAt(step) {
  const hooks = `import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    import { Pool } from '${pathToFileURL(ROOT)}lib/torus/pool.js';
    let left = ${step};
    for (const [place, name] of [[Pool.prototype, 'rescueState'], [fs, 'renameSync']]) {
      const real = place[name];
      place[name] = function (...given) {
        if (left-- === 0) process.kill(process.pid, 'SIGKILL');
        return real.apply(this, given);
      };
    }
    syncBuiltinESMExports();`;
  const [node, sprites] = SPRITES;
  return [node, '--import', `data:text/javascript,${encodeURIComponent(hooks)}`, sprites];
}

for (const name of NAMES.filter((one) => one.startsWith('files'))) {
  t.test(`${name}: a crash while it is taken over loses nothing`, async (t) => {
    const { asked, seen } = STATES[name];
    const oldFiles = oldFilesOf(name);
    for (let step = 0; step <= oldFiles.length; ++step) {
      const { options, folder } = copyOf(t, name);
      const command = killedAt(step);
      const { code } = await launchToEnd(t, options, { command });
      t.equal(code, null, 'it is killed');
      const left = oldFiles.filter((file) => existsSync(join(folder, file)));
      t.equal(left.length, oldFiles.length - Math.max(0, step - 1));
      const server = await startServer(t, { options });
      t.strictSame(await readState(server, asked), seen, `before step ${step}`);
      await server.stop();
    }
  });
}

for (const name of NAMES) {
  t.test(`${name}: all that was promised is there, in this run and in the next`, async (t) => {
    const { options, folder } = copyOf(t, name);
    const { asked, seen } = STATES[name];
    for (const run of ['first', 'second']) {
      const server = await startServer(t, { options });
      t.strictSame(await readState(server, asked), seen, `the ${run} run`);
      const wire = await Wire.open(server.port, server.host, seen.bans[0]);
      t.equal(problemOf(await wire.send(request('GET', '/status')).read()), 'too-many-connections');
      await wire.destroy();
      await server.stop();
    }
    t.strictSame(
      readdirSync(folder).toSorted(),
      ['state', ...oldFilesOf(name).map((file) => `${file}.previous`)].toSorted(),
      'it is a state of this version now'
    );
  });

  t.test(
    `${name}: what can't be read is refused in one line, and nothing is changed`,
    async (t) => {
      const { options, folder } = copyOf(t, name);
      const whole = filesIn(folder);
      for (const file of Object.keys(whole)) {
        const path = join(folder, file);
        if (/\.epochs$/.test(file)) continue; // it is not read
        for (const change of [asLaterVersion, damaged]) {
          writeFileSync(path, change(file, Buffer.from(whole[file], 'latin1')));
          const before = filesIn(folder);
          const { code, errors } = await launchToEnd(t, options);
          t.equal(code, 1, errors);
          t.match(errors, new RegExp(`^sprites: .*${path}.*: its? .*\n$`), file);
          t.strictSame(filesIn(folder), before);
          writeFileSync(path, Buffer.from(whole[file], 'latin1'));
        }
      }
    }
  );
}
