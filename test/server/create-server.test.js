import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import t from 'tap';

import { createServer } from 'sprites-server';

import { camel } from '../../lib/operator/options.js';
import { tableForPrograms } from '../../lib/operator/program-options.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { shown } from '../support/documents.js';
import { ROOT } from '../support/server.js';
import { until } from '../support/until.js';

/** A server within another Node program. */

t.setTimeout(300_000); // TypeScript takes its time on a machine that does other things

const TSC = join(ROOT, 'node_modules/.bin/tsc');

/** A server on a free port of loopback, closed at the end of the test. */
async function serve(t, options = {}) {
  const server = await createServer({ port: 0, host: '127.0.0.1', drain: 0, ...options });
  t.teardown(() => server.close());
  return server;
}

/** Runs a program of this checkout, and gives what it has said. */
async function run(t, text) {
  const file = join(t.testdir(), 'program.mjs');
  writeFileSync(file, text);
  // By env: the test runner's own hooks, which it puts into every child, are not for this one.
  return promisify(execFile)('env', ['-u', 'NODE_OPTIONS', process.execPath, file], {
    cwd: ROOT,
    env: { ...plainEnvironment(), SPRITES_PORT: 'no port', SPRITES_CAPACITY: 'none' },
    timeout: 120_000
  });
}

t.test('the example of the manual runs, and ends by itself', async (t) => {
  const { stdout, stderr } = await run(t, shown('lib/server/README.md', 'as `beside.mjs`'));
  t.same(stdout.trim().split('\n').sort(), ['1', 'star']);
  t.equal(stderr, '');
});

t.test('two servers in one program have nothing in common', async (t) => {
  const [one, other] = [await serve(t, { adminPort: 0 }), await serve(t, { capacity: '5' })];
  t.not(one.port, other.port);
  t.same(one.addresses, [`http://127.0.0.1:${one.port}/`]);
  t.same(one.adminAddresses, [`http://127.0.0.1:${one.adminPort}/`]);
  t.match(other, { adminPort: 0, adminAddresses: [], tlsPort: 0, tlsAddresses: [] });
  await fetch(`${one.addresses[0]}join`, { method: 'POST' });
  t.match(one.status(), { clients: 1, capacity: 1000000, parked: 0 });
  t.match(other.status(), { clients: 0, capacity: 5 });
  const metrics = await (await fetch(`${one.adminAddresses[0]}metrics`)).text();
  t.match(metrics, '\nsprites_clients 1\n');
  const ends = [one.close(), one.close()];
  t.equal(ends[0], ends[1], 'ends once');
  await ends[0];
  await t.rejects(fetch(one.addresses[0]));
  t.equal((await fetch(`${other.addresses[0]}status`)).status, 200, 'the other one goes on');
  const again = await serve(t, { port: one.port });
  t.equal(again.port, one.port, 'its port is free');
});

t.test('nothing of the process is touched', async (t) => {
  const { stdout, stderr } = await run(
    t,
    `import cluster from 'node:cluster';
    const looks = () => JSON.stringify([
      process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      process.exitCode, process.title, cluster.settings, process.stdout.listenerCount('error'),
      Object.keys(globalThis)
    ]);
    const before = looks();
    const { createServer } = await import('sprites-server');
    const server = await createServer({ port: 0, drain: 0, adminPort: 0 });
    await fetch(server.addresses[0] + 'join', { method: 'POST', headers: { Connection: 'close' } });
    await server.close();
    const after = looks();
    process.stdout.write(after === before ? 'the same' : before + '\\n' + after);`
  );
  t.equal(stdout, 'the same');
  t.equal(stderr, '');
});

t.test('a wrong option says which it is, and opens nothing', async (t) => {
  const { port } = await serve(t);
  const wrong = [
    [{ prot: 1 }, 'ERR_SPRITES_OPTION', 'there is no option prot; did you mean port?'],
    [{ door: 'node' }, 'ERR_SPRITES_OPTION', 'door is no option here: there is one door'],
    [{ 'throw-rate': 1 }, 'ERR_SPRITES_OPTION', /no option throw-rate; did you mean throwRate\?/],
    [{ port: 65536 }, 'ERR_SPRITES_OPTION', 'port takes a whole number from 0 to 65535'],
    [{ port: 1.5 }, 'ERR_SPRITES_OPTION', 'not "1.5"'],
    [{ port: NaN }, 'ERR_SPRITES_OPTION', 'not "NaN"'],
    [{ port: null }, 'ERR_SPRITES_OPTION', 'not null'],
    [{ port: [80] }, 'ERR_SPRITES_OPTION', 'not [ 80 ]'],
    [{ port: true }, 'ERR_SPRITES_OPTION', 'not true'],
    [{ capacity: 10n }, 'ERR_SPRITES_OPTION', 'not 10n'],
    [{ mailboxMemory: '9X' }, 'ERR_SPRITES_OPTION', 'mailboxMemory takes a size'],
    [{ mailboxBytes: 4096 }, 'ERR_SPRITES_OPTION', /^mailboxBytes must have .* of maxSprite bytes/],
    [{ workers: 2 }, 'ERR_SPRITES_OPTION', 'workers is no option here'],
    [{ logLevel: 'info' }, 'ERR_SPRITES_OPTION', 'logLevel is no option here: give a log'],
    [{ check: 5 }, 'ERR_SPRITES_OPTION', 'check is no option here'],
    [{ tlsCert: '/nope', tlsKey: '/nope', port: 0 }, undefined, "tlsCert /nope can't be read"],
    [{ port }, 'EADDRINUSE', 'choose another port by port']
  ];
  for (const [options, code, message] of wrong) {
    const error = await createServer({ host: '127.0.0.1', ...options }).catch((reason) => reason);
    t.equal(error.code, code, String(error.message));
    t.match(error.message, message);
    t.notMatch(error.message, '--', 'in the words of a program');
  }
  t.same(
    (await serve(t, { port: undefined, cors: undefined, ...{ port: 0 } })).status().clients,
    0,
    'undefined is the default'
  );
});

t.test('a start waits for a state, can be called off, and logs where it is told to', async (t) => {
  const state = join(t.testdir(), 'state');
  const lines = [];
  const note = (fields, message = fields) => lines.push(message);
  const options = {
    ...{ port: 0, host: '127.0.0.1', drain: 0, state },
    log: { debug: note, info: note, warn: note, error: note }
  };
  const waits = () => lines.includes('waits for the state of another server');
  const first = await createServer(options);
  await fetch(`${first.addresses[0]}join`, { method: 'POST' });
  const off = new AbortController();
  const called = createServer({ ...options, signal: off.signal });
  await until(waits);
  off.abort();
  await t.rejects(called, { name: 'AbortError' });

  lines.length = 0;
  const waiting = createServer(options);
  await until(waits);
  await first.close();
  const second = await waiting;
  t.equal(second.status().clients, 1, 'it has the state of the first');
  rmSync(state, { force: true });
  mkdirSync(state);
  await t.rejects(second.close(), { message: /^state .* no snapshot can be written/ });
});

t.test('in a thread that is not the main one it says so', async (t) => {
  const { stdout } = await run(
    t,
    `import { Worker, isMainThread } from 'node:worker_threads';
    import { fileURLToPath } from 'node:url';
    if (isMainThread) {
      const worker = new Worker(fileURLToPath(import.meta.url));
      worker.on('error', (error) => console.log('error', error));
    } else {
      const { createServer } = await import('sprites-server');
      await createServer({ port: 0 }).catch(({ code, message }) => console.log(code, message));
    }`
  );
  t.match(stdout, 'ERR_SPRITES_ADDON the native addon works in the main thread alone');
});

t.test('the declarations have every option, and TypeScript holds a program to them', async (t) => {
  const made = execFileSync(process.execPath, ['lib/operator/option-types.js'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: plainEnvironment()
  });
  writeFileSync(join(ROOT, 'lib/server/types/options.d.ts'), made);
  for (const { name } of tableForPrograms) t.match(made, ` ${camel(name)}?: `);

  const right = `import { createServer, type Options, type Server } from 'sprites-server';
    import pino from 'pino';
    const options: Options = { port: 0, mailboxMemory: '1G', adminPort: 'none', sync: 'turn' };
    const off = new AbortController();
    const server: Server = await createServer({ ...options, log: pino(), signal: off.signal });
    const other = await createServer({ maxSprite: 4096, log: console });
    const first: string = server.addresses[0]!;
    const clients: number = server.status().clients + other.port + first.length;
    console.log(clients.toFixed());
    server.reload();
    await server.close();`;
  const wrong = {
    'an-option-that-is-none': right.replace('port: 0', 'prot: 0'),
    'a-port-that-is-a-word': right.replace('port: 0', "port: 'eighty'"),
    'a-sync-that-is-none': right.replace("'turn'", "'soon'"),
    'a-log-that-is-none': right.replace('log: console', 'log: 1'),
    workers: right.replace('maxSprite: 4096', 'workers: 2'),
    'a-count-that-is-a-word': right.replace('clients: number', 'clients: string')
  };
  // In the checkout: a package finds itself by its name.
  const folder = t.testdir();
  const files = Object.entries({ right, ...wrong });
  for (const [name, text] of files) writeFileSync(join(folder, `${name}.mts`), text);
  const strict = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2022'];
  const modern = ['--module', 'nodenext', '--lib', 'es2022,dom'];
  const names = files.map(([name]) => `${name}.mts`);
  const said = await promisify(execFile)(TSC, [...strict, ...modern, ...names], {
    cwd: folder,
    env: plainEnvironment()
  }).catch(({ stdout }) => ({ stdout }));
  const complaints = said.stdout.match(/^[\w-]+(?=\.mts\(\d+,\d+\): error TS)/gm);
  t.same([...new Set(complaints)].sort(), Object.keys(wrong).sort(), said.stdout);
});
