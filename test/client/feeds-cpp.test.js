import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { ValueError, applyPatch, freeze } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { compare } from '../../lib/feeds/compare.js';
import { Random, freshSeed } from '../fuzz/random.js';
import { buildClient, noClient, plainEnvironment, tool } from '../support/cpp-build.js';
import { Probe } from '../support/cpp-probe.js';
import { playUntilPatched } from '../support/feeds-history.js';
import { patch, put, TOKEN, tokenFile } from '../support/feeds.js';
import { keyFile, reads } from '../support/grants.js';
import { randomlyChanged, randomPatch, randomValue } from '../support/json-cases.js';
import { shown } from '../support/documents.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** The C++ client of feeds: its patches beside the JavaScript client's, the server, and the README's programs. */

t.setTimeout(600_000);

/** Returns a vector: a value, a fitting or foreign patch, and the result of the JavaScript client. */
function randomCase(random, why) {
  const value = freeze(randomValue(random));
  const patch = random.oneIn(2)
    ? compare(value, randomlyChanged(random, value))
    : randomPatch(random, value, ['add', 'remove', 'replace']);
  let result = '';
  try {
    result = `,"result":${canonical(applyPatch(value, patch))}`;
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
  }
  return `{"why":"${why}","value":${canonical(value)},"patch":${canonical(patch)}${result}}`;
}

t.test('the C++ client of feeds', { skip: noClient }, async (t) => {
  const build = await buildClient();
  const program = join(build, 'sprites_feeds_probe');

  await t.test('takes and refuses the patches that the JavaScript client does', async (t) => {
    const seed = Number(process.env.SEED ?? freshSeed());
    t.comment(`seed ${seed}`);
    const random = new Random(seed);
    const patches = Array.from({ length: 5000 }, (_, n) => randomCase(random, `${seed} ${n}`));
    const vectors = join(t.testdir(), 'feeds.json');
    writeFileSync(vectors, `{"patches":[${patches.join(',\n')}]}`);
    const otherVectors = ['sprites', 'client'].map((name) =>
      join(ROOT, `test/vectors/${name}.json`)
    );
    await tool(join(build, 'sprites_unit'), [...otherVectors, vectors]);
  });

  await t.test("patches give the server's own text", async (t) => {
    const options = { 'publish-token-file': tokenFile(t) };
    const server = await startServer(t, { options });
    const list = Array.from({ length: 100 }, (_, n) => ({ n, name: `player ${n}` }));
    await put(server, 'team/1', { list, '\u{1f600}': 1, '\ue000': 2 });
    const client = new Probe(t, program, server.url, [
      ...['--watch', 'team/1', '--watch', 'later']
    ]);
    const change = (key, holds) =>
      client.until((each) => each.event === 'change' && each.key === key && holds(each));
    await change('team/1', ({ text }) => text !== '');
    await patch(server, 'team/1', 'merge-patch', { coach: 'Ada', '\u20ac': [1] });
    const { text, patch: newPatch, cursor } = await change('team/1', (each) => each.patch);
    t.equal(text, canonical({ coach: 'Ada', '\u20ac': [1], list, '\u{1f600}': 1, '\ue000': 2 }));
    t.equal(newPatch.length, 2);
    await put(server, 'later', { is: 'here' });
    t.equal((await change('later', ({ problem }) => problem === '')).text, '{"is":"here"}');
    client.say('close-all');
    await client.state('idle');
    await server.until(({ watching }) => watching === 0);
    await client.quit();

    const heldArgs = ['--held', cursor, text, '--watch', 'team/1'];
    const next = new Probe(t, program, server.url, heldArgs);
    await patch(server, 'team/1', 'merge-patch', { coach: 'Grace' });
    const newer = await next.until(({ event }) => event === 'change');
    t.equal(newer.text, text.replace('Ada', 'Grace'));
    t.equal(newer.patch.length, 1, 'another run goes on with patches');
    await next.quit();
    await server.stop();
  });

  await t.test('a client that watches has the newest value in the end', (t) =>
    playUntilPatched(t, { steps: 30, program })
  );

  /** Runs a program of the README. @returns {Promise<() => string[]>} returns its output lines so far */
  async function runShown(t, name, { port }, cwd = t.testdir()) {
    const source = shown('native/client/README.md', `\`${name}.cc\` as`);
    const defaultOptions = 'sprites::FeedsOptions options;';
    t.match(source, defaultOptions);
    const withServer = `${defaultOptions} options.server = "http://127.0.0.1:${port}";`;
    const file = join(cwd, name);
    writeFileSync(`${file}.cc`, source.replace(defaultOptions, withServer));
    await tool('g++', [
      ...['-std=c++17', '-Wall', '-Wextra', '-Werror', `-I${ROOT}native/client/include`],
      ...[`${file}.cc`, '-o', file, join(build, 'libsprites.a'), '-lcurl', '-pthread']
    ]);
    const output = [];
    const running = execFile(file, { cwd, env: plainEnvironment() });
    t.teardown(async () => {
      running.stdin.end('\n');
      await until(() => running.exitCode === 0);
    });
    running.stdout.on('data', (text) => output.push(text));
    return () => output.join('').trim().split('\n').filter(Boolean);
  }

  await t.test('the programs in the README follow what is published', async (t) => {
    const options = { grants: keyFile(t), private: 'team/*', 'publish-token-file': tokenFile(t) };
    const server = await startServer(t, { options });
    const lines = await runShown(t, 'watch', server);
    await server.until(({ watching }) => watching === 1);
    await put(server, 'league/table', { first: 'Ada', laps: Array(100).fill(7) });
    await until(() => lines().length === 1);
    await patch(server, 'league/table', 'merge-patch', { first: 'Grace' });
    await until(() => lines().length === 3);
    t.match(lines()[0], /^\{"first":"Ada",/);
    t.match(lines()[1], /^\{"first":"Grace",/);
    t.equal(lines()[2], 'by [{"op":"replace","path":"/first","value":"Grace"}]');

    const folder = t.testdir({ 'grant.txt': `${reads('team/7/*')}\n` });
    const chat = await runShown(t, 'chat', server, folder);
    await server.until(({ watching }) => watching === 2);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    await server.ask('POST', '/feed/team/7/chat', { body: '{"hello":"ann"}', headers });
    await until(() => chat().length === 1);
    t.equal(chat()[0], '{"hello":"ann"}');
  });
});
