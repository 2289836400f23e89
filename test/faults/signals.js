import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { SideLoad } from './side-load.js';
import { start } from './crash.js';

/** Sends a signal at every few milliseconds of a start and of a stop: the next start must serve, with all promises. */

const SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Milliseconds between two signals' times; the last time in a start; the last time in a stop. */
const STEP = 5;
const LAST_IN_START = 600;
const LAST_IN_STOP = 300;

/** After this many signals a server runs undisturbed, and its promises are checked. */
const CHECK_EVERY = 5;

async function post(port, path, body) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body });
  return answer.json();
}

async function run(scene) {
  const times = scene.short ? 60 : 2000;
  const folder = await scene.folder();
  const sideLoad = new SideLoad(scene);
  const options = {
    ...{ port: 0, state: join(folder, 'state'), lease: 300, drain: 0 },
    ...{ 'log-level': 'warn', 'journal-bytes': 1 << 16, ...sideLoad.options }
  };
  let id;
  let thrown = 0;
  let signalCount = 0;
  for (let i = 0; i < times; i += 1) {
    const moment = ((i * STEP * 7) % LAST_IN_START) + Math.random() * STEP;
    await start(scene, options, { signal: SIGNALS[i % SIGNALS.length], after: moment });
    signalCount += 1;
    if (i % CHECK_EVERY !== 0) continue;

    const server = await start(scene, options);
    await sideLoad.check(server);
    id ??= (await post(server.port, '/join')).id;
    const poll = await fetch(`http://127.0.0.1:${server.port}/poll/${id}?ack=0&hold=5`);
    const { sprites = [] } = thrown > 0 ? await poll.json() : { sprites: [] };
    assert.equal(sprites.length, thrown, 'each sprite that was promised is there, once');
    if (thrown < 20) {
      // The only client catches its own sprites.
      await post(server.port, `/throw/${id}/left?n=${thrown + 1}`, `{"u":${thrown}}`);
      thrown += 1;
    }
    await sideLoad.start(server);
    await pause(20);
    server.child.kill(i % 2 === 0 ? 'SIGTERM' : 'SIGHUP');
    await pause(((i * STEP) % LAST_IN_STOP) + Math.random() * STEP);
    server.child.kill(SIGNALS[(i / CHECK_EVERY) % 2 === 0 ? 0 : 3]);
    await server.ended;
    await sideLoad.stop();
    signalCount += 1;
  }
  const server = await start(scene, options);
  await sideLoad.check(server);
  return `${signalCount} signals; ${sideLoad.published} publications and ${thrown} sprites promised, none missing`;
}

export const signals = {
  name: 'a signal at any moment of a start and of a stop',
  promise:
    'each next start serves, with every client, sprite, feed, player and ban that was promised',
  longest: 3600,
  run
};
