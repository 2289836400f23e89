/**
 * A room full of people: `npm run bench:arena:room -- [options]`.
 *
 * Starts bin/sprites. Phones and a field in Chromium play pong, and wrk (Debian's package) plays for the simulated
 * players, each with a connection of its own and the inputs a second of a phone. Prints the time from an input until
 * the feed of the field has it, at a watcher of that feed and in the field's page, and the frames a second of the
 * field.
 *
 * The timed inputs are those of a further player, whose last input is a further member of pong's value. The time
 * begins before the request is sent: it includes the way to the server, and the wait for the next reduction, 25 ms on
 * average at 20 a second.
 *
 * The exit status is 1 if a bound does not hold: p99 of 100 ms, and the law of inputs at every check. Frames are
 * printed and have no bound: without a GPU the CPU draws them.
 *
 * In a room each phone, and the field, is a machine of its own. Here they share the CPU with the server, so the
 * phones' Chromium has a low priority (nice). `--together` gives all the same priority.
 *
 *   --phones N     10      in Chromium
 *   --players N    2000    simulated
 *   --rate R       4       inputs a second of each player
 *   --seconds S    20
 *   --width W      1920    width of the field in pixels; its ratio is 16:9
 *   --together             all with the same priority
 */
/* global document, KeyboardEvent */
import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Feeds } from '../../lib/client/client.js';
import { answerHelp, takeValues } from '../support/documents.js';
import { Browser, CHROMIUM, framesPerSecond } from '../support/page-browser.js';
import { atExit, temporary } from '../support/processes.js';
import { arenaOptions, publishSettings, joinArena, checkedStatus, wrk } from './arena-rig.js';
import { startSprites } from './contenders.js';
import { knownVerdicts, printVerdicts, tenth } from './figures.js';
import { cpuSeconds } from './usage.js';

answerHelp(import.meta.url);

const values = takeValues(import.meta.url, {
  ...{ phones: [10], players: [2000], rate: [4, 0.1], seconds: [20, 1], width: [1920, 100] },
  together: false
});
const { phones: PHONES, players: PLAYERS, rate: RATE, seconds: SECONDS, width: WIDTH } = values;
const BOUNDS = { p99: 100 };
const PROBES_PER_SECOND = 12; // timed inputs a second
const PONG_FOLDER = new URL('../../lib/arena/games/pong/', import.meta.url);

/** Pong with player 1's last input in its value; the field's page records when it gets each value. */
const PROBED_FILES = {
  'reduce.js': `import { reduce as pong } from ${JSON.stringify(new URL('reduce.js', PONG_FOLDER).href)};
export function reduce(now, memory) {
  return { ...pong(now, memory), probe: now.inputs.y[now.numbers.indexOf(1)] ?? 0, over: false };
}`,
  'field.js': `import { start as pong } from './pong-field.js';
export function start(parts) {
  const game = pong(parts);
  globalThis.probed = [];
  return {
    ...game,
    value(reduced) {
      globalThis.probed.push([reduced.value?.probe, performance.timeOrigin + performance.now()]);
      game.value(reduced);
    }
  };
}`
};

const folder = temporary(atExit);
const pathInFolder = (...names) => join(folder, ...names);

function writeGame() {
  mkdirSync(pathInFolder('games'));
  cpSync(fileURLToPath(PONG_FOLDER), pathInFolder('games/pong'), { recursive: true });
  renameSync(pathInFolder('games/pong/field.js'), pathInFolder('games/pong/pong-field.js'));
  for (const [name, text] of Object.entries(PROBED_FILES)) {
    writeFileSync(pathInFolder('games/pong', name), text);
  }
}

async function startServer() {
  writeGame();
  const options = arenaOptions(pathInFolder('games'), pathInFolder('tokens'));
  // The timed player joins first, long before it sends.
  const server = await startSprites({ ...options, lease: 300 }, { probed: false });
  return { ...server, base: `http://127.0.0.1:${server.port}` };
}

// ---- the simulated players

/** Returns wrk's script: an input of each player in turn, on each connection at the rate of a player. */
const script = (paths) => `
local paths = {${paths.map((path) => `"${path}"`).join(',')}}
local at = 0
delay = function() return ${Math.round(800 / RATE)} + math.random(${Math.round(400 / RATE)}) end
request = function()
  at = at % #paths + 1
  return wrk.format("POST", paths[at], {}, string.format('{"y":%.3f}', math.random()))
end
`;

async function prepareCrowd(base) {
  const paths = [];
  for (let i = 0; i < PLAYERS; i += 1) paths.push(await joinArena(base));
  writeFileSync(pathInFolder('inputs.lua'), script(paths));
  const how = { connections: PLAYERS, script: pathInFolder('inputs.lua') };
  return (seconds) =>
    PLAYERS === 0 ? pause(seconds * 1000, { refused: 0 }) : wrk(`${base}/`, { ...how, seconds });
}

// ---- the timed inputs

const wallClock = () => performance.timeOrigin + performance.now();

/** A further player with numbered inputs, and a watcher of the feed. */
function startTimedPlayer(base, path) {
  const sent = new Map();
  const arrived = [];
  const feeds = new Feeds({ base: `${base}/`, onState: () => {} });
  feeds.watch('arena/hall', ({ value } = {}) => arrived.push([value?.probe, wallClock()]));
  let number = 0;
  let isRunning = true;
  async function send() {
    while (isRunning) {
      number += 1;
      const y = number / 2 ** 16;
      sent.set(y, wallClock());
      await (
        await fetch(new URL(path, base), { method: 'POST', body: JSON.stringify({ y }) })
      ).arrayBuffer();
      // A random pause, so that inputs are not in step with the reductions.
      await pause((500 + Math.random() * 1000) / PROBES_PER_SECOND);
    }
  }
  const sending = send();
  return {
    /** @returns {number[]} milliseconds from an input to the first of `versions` with this input or a later one */
    waitTimes(versions) {
      const times = [];
      let at = 0;
      for (const [y, time] of sent) {
        while (at < versions.length && !(versions[at][0] >= y)) at += 1;
        if (at < versions.length) times.push(versions[at][1] - time);
      }
      return times.toSorted((a, b) => a - b);
    },
    arrived,
    begin() {
      sent.clear();
      arrived.length = 0;
    },
    async end() {
      isRunning = false;
      await sending;
      feeds.close();
    }
  };
}

const quantileOf = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;

// ---- the pages

/** Returns the phones' Chromium, with a lower priority than the server and the field. */
function lowPriorityChromium() {
  if (values.together) return CHROMIUM;
  const path = pathInFolder('politely');
  writeFileSync(path, `#!/bin/sh\nexec nice -n 19 ${CHROMIUM} "$@"\n`, { mode: 0o755 });
  return path;
}

/** Moves a phone's slider up and down, by keys. */
const play = (page) =>
  page.evaluate(() => {
    let up = true;
    setInterval(() => {
      const slider = document.querySelector('[role=slider]');
      if (Math.random() < 0.1) up = !up;
      const key = up ? 'ArrowUp' : 'ArrowDown';
      slider?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    }, 250);
  });

async function main({ pids, base }) {
  const probe = await joinArena(base);
  await publishSettings(base, {
    game: 'pong',
    running: true,
    rate: RATE,
    pace: 20,
    settings: { points: 21 }
  });
  const [browser, phones] = await Promise.all([
    new Browser().start(CHROMIUM),
    new Browser().start(lowPriorityChromium())
  ]);
  try {
    const height = Math.round((WIDTH * 9) / 16);
    const field = await browser.visit(`${base}/field/hall`, {
      viewport: { width: WIDTH, height },
      deviceScaleFactor: 1,
      reducedMotion: 'no-preference'
    });
    await field.waitForFunction(() => Number(document.getElementById('root').dataset.drawn) > 5);
    for (let i = 0; i < PHONES; i += 1) {
      const viewport = { width: 360, height: 640 };
      const page = await phones.visit(`${base}/play/hall`, {
        viewport,
        deviceScaleFactor: 1,
        hasTouch: true
      });
      await page.waitForSelector('[role=slider]');
      await play(page);
    }
    const load = await prepareCrowd(base);
    const timedPlayer = startTimedPlayer(base, probe);
    const crowdOver = load(SECONDS + 4);
    await pause(2000);
    timedPlayer.begin();
    await field.evaluate(() => void (globalThis.probed.length = 0));
    const before = await checkedStatus(base);
    const [cpuBefore, began] = [cpuSeconds(pids), performance.now()];
    const drawing = framesPerSecond(field, { ms: SECONDS * 1000 });
    let checks = 0;
    for (const end = began + SECONDS * 1000; performance.now() < end; checks += 1) {
      await checkedStatus(base);
      await pause(200);
    }
    const frames = await drawing;
    const [cpu, seconds] = [cpuSeconds(pids) - cpuBefore, (performance.now() - began) / 1000];
    const after = await checkedStatus(base);
    const { refused } = await crowdOver;
    await timedPlayer.end();
    const pageVersions = await field.evaluate(() => globalThis.probed);
    return {
      players: after.players,
      inputs: (after.inputs - before.inputs) / seconds,
      reductions: (after.reductions - before.reductions) / seconds,
      cpu: cpu / seconds,
      ...{ looks: checks, refused, frames },
      feed: timedPlayer.waitTimes(timedPlayer.arrived),
      page: timedPlayer.waitTimes(pageVersions)
    };
  } finally {
    await Promise.all([browser.stop(), phones.stop()]);
  }
}

const server = await startServer();
try {
  const result = await main(server);
  const { players, inputs, reductions, cpu, looks, refused, frames, feed, page } = result;
  console.log(
    `${players} players, ${PHONES} of them in Chromium, ${cpus().length} cores for all: ` +
      `${Math.round(inputs)} inputs/s, ${reductions.toFixed(1)} reductions/s, server ${Math.round(cpu * 100)} % of a core, ` +
      `${refused} refused, the law of inputs held at ${looks} looks`
  );
  const p = (list, share) => `${Math.round(quantileOf(list, share))} ms`;
  for (const [where, list] of [
    ['the feed', feed],
    ["the field's page", page]
  ]) {
    console.log(
      `from an input to ${where}: p50 ${p(list, 0.5)}, p99 ${p(list, 0.99)}, longest ${p(list, 1)} (${list.length} inputs)`
    );
  }
  console.log(`${frames.toFixed(1)} frames a second at ${WIDTH} pixels`);
  const p99 = quantileOf(feed, 0.99);
  const verdicts = [
    [`p99 at most ${BOUNDS.p99} ms to the feed`, p99, tenth.format, p99 <= BOUNDS.p99]
  ];
  printVerdicts({ strict: true }, knownVerdicts(verdicts));
} finally {
  await server.stop();
}
