import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { plainEnvironment } from '../support/cpp-build.js';
import { ROOT } from '../support/server.js';
import { Skip } from './scene.js';

/** The state on a disk that fails. */

const SERVER = [process.execPath, `${ROOT}bin/sprites`];

/** Fills a server with sprites that wait; gives the ids. */
async function fill(server, clients, sprites, size) {
  const ids = [];
  for (let i = 0; i < clients; i++) ids.push(await server.join());
  for (let i = 0; i < sprites; i++) {
    const body = JSON.stringify({ key: i, fill: 'x'.repeat(size) });
    assert.equal((await server.throw(ids[i % clients], 'left', body)).status, 202);
  }
  return ids;
}

const OWN_MOUNT = ['unshare', ...(process.getuid() === 0 ? [] : ['-r']), '-m', 'sh', '-c'];

export const full = {
  name: 'disk full',
  promise: 'nothing is promised that could not be kept: 503 state-unwritable',
  async run(scene) {
    const folder = await scene.folder();
    const mount = 'mount -t tmpfs -o size=64k sprites "$0" && ';
    if (spawnSync(OWN_MOUNT[0], [...OWN_MOUNT.slice(1), `${mount} exit 0`, folder]).status !== 0) {
      throw new Skip('no file system may be mounted here');
    }
    const state = join(folder, 'state');
    const command = [...OWN_MOUNT, `${mount} exec "$@"`, folder, ...SERVER];
    const server = await scene.server({ state, drain: 0 }, { command });
    // No room for a journal: nothing is promised.
    const { status, body } = await server.ask('POST', '/join');
    assert.deepEqual([status, body.type], [503, 'urn:sprites:state-unwritable']);
    server.child.kill('SIGTERM');
    const ended = await server.ended();
    const said = Buffer.concat(server.errors).toString();
    assert.deepEqual(ended, { code: 0, signal: null }, said);
    assert.doesNotMatch(said, /\n\s+at /, 'no stack');
    return '503 state-unwritable';
  }
};

/** Starts a server that must refuse to. */
async function refuses(state, before = []) {
  const [program, ...args] = [
    ...before,
    ...SERVER,
    '--port',
    '0',
    '--host',
    '127.0.0.1',
    '--state',
    state,
    '--log-level',
    'error'
  ];
  const child = spawn(program, args, { env: plainEnvironment(), timeout: 20_000 });
  const said = [];
  child.stderr.on('data', (chunk) => said.push(chunk));
  child.stdout.resume();
  const [code] = await once(child, 'close');
  const text = Buffer.concat(said).toString();
  assert.equal(code, 1, `it must not start: ${text}`);
  assert.match(text, /^sprites: --state [^\n]+\n$/, 'one line');
  return text.trim();
}

export const damaged = {
  name: 'the state file damaged, foreign or unreadable',
  promise: 'one clear line, exit 1, the file untouched; the whole one is taken, with every sprite',
  async run(scene) {
    const folder = await scene.folder();
    const state = join(folder, 'state');
    const before = await scene.server({ state, drain: 0 });
    const ids = await fill(before, 9, 90, 100);
    await before.stop();
    const good = await readFile(state);
    const flipped = Buffer.from(good);
    flipped[Math.floor(good.length / 2)] ^= 1;
    const newer = Buffer.from(good);
    newer[8] += 1;
    const bad = {
      flipped,
      truncated: good.subarray(0, good.length - 7),
      empty: Buffer.alloc(0),
      newer,
      longer: Buffer.concat([good, Buffer.from('x')]),
      foreign: Buffer.from('#!/bin/sh\nexit 0\n')
    };
    for (const [name, bytes] of Object.entries(bad)) {
      const path = join(folder, name);
      await writeFile(path, bytes);
      const { mtimeMs } = await stat(path);
      await refuses(path);
      assert.ok((await readFile(path)).equals(bytes), `${name}: its bytes are as they were`);
      assert.equal((await stat(path)).mtimeMs, mtimeMs, `${name}: not written to`);
    }
    let kinds = Object.keys(bad).length;
    await mkdir(join(folder, 'directory'));
    await refuses(join(folder, 'directory'));
    kinds++;
    // Root may read every file: another user is needed.
    const unprivileged = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'];
    const own = join(folder, 'own');
    await mkdir(own);
    await writeFile(join(own, 'secret'), good, { mode: 0 });
    if (process.getuid() === 0) {
      await chown(own, 65534, 65534);
      await chmod(folder, 0o755);
    }
    const as = process.getuid() === 0 ? unprivileged : [];
    if (
      as.length === 0 ||
      spawnSync(as[0], [...as.slice(1), ...SERVER, '--version']).status === 0
    ) {
      const line = await refuses(join(own, 'secret'), as);
      assert.match(line, /EACCES|permission/i);
      kinds++;
    }
    const after = await scene.server({ state, drain: 0 });
    const { waiting, clients } = await after.status();
    assert.deepEqual({ waiting, clients }, { waiting: 90, clients: 9 });
    const keys = new Set();
    for (const id of ids) {
      const { body } = await after.poll(id);
      for (const { sprite } of body.sprites) keys.add(sprite.key);
    }
    assert.equal(keys.size, 90, 'every sprite that was promised');
    return `${kinds} kinds refused in one line, untouched; the whole one: 9 clients, 90 of 90 sprites`;
  }
};
