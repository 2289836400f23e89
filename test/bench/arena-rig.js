/**
 * A server with an arena, its panel, and wrk (Debian's package), for the benches of the arena.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';

import { start } from './contenders.js';

const TOKEN = 'bench';

/** Writes the panel's token to `file`. @returns {object} options of the server */
export function arenaOptions(games, file) {
  writeFileSync(file, `${TOKEN}\n`);
  return {
    ...{ arena: 'hall', games, 'publish-token-file': file, 'address-joins': 0 },
    'log-level': 'warn'
  };
}

/** Publishes the panel's settings. @param {string} url URL of the server, without a slash at its end */
export async function publishSettings(url, members) {
  const answer = await fetch(`${url}/feed/arena/hall/control`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify(members)
  });
  if (answer.status !== 200) throw new Error(await answer.text());
}

/** Adds a player. @returns {Promise<string>} the path of the player's inputs */
export async function joinArena(url) {
  const { player } = await (await fetch(`${url}/arena/hall`, { method: 'POST' })).json();
  return `/arena/hall/${player}`;
}

/** Reads /status, and checks the law of inputs. @returns {Promise<object>} the status */
export async function checkedStatus(url) {
  const status = await (await fetch(`${url}/status`)).json();
  const { inputs, inputsReduced, inputsSuperseded, inputsWaiting } = status;
  if (inputs !== inputsReduced + inputsSuperseded + inputsWaiting) {
    throw new Error(`the law of inputs does not hold: ${JSON.stringify(status)}`);
  }
  return status;
}

/**
 * Runs wrk.
 *
 * @param {string} url
 * @param {{connections: number, seconds: number, script: string, core?: number}} how `script`: file of wrk's Lua
 *     script
 * @returns {Promise<{refused: number}>}
 */
export async function wrk(url, { connections, seconds, script, core = null }) {
  const command = ['wrk', '-t', 1, '-c', connections, '-d', `${seconds}s`, '-s', script, url];
  const child = start(core, command, { stdio: ['ignore', 'pipe', 'inherit'] });
  const text = child.stdout.toArray();
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`wrk ended with ${code}`);
  const output = Buffer.concat(await text).toString();
  const [, refused = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(output) ?? [];
  return { refused: Number(refused) };
}
