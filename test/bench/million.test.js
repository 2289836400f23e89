import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import t from 'tap';

import { verdictOf } from './figures.js';

const MILLION = fileURLToPath(new URL('./million', import.meta.url));
const OWN_KERNEL = fileURLToPath(new URL('./own-kernel', import.meta.url));

/** Runs a command, and the Nodes it starts, without the loader of the test runner. */
async function run(...command) {
  try {
    return { code: 0, ...(await promisify(execFile)('env', ['-u', 'NODE_OPTIONS', ...command])) };
  } catch ({ code, stdout, stderr }) {
    return { code, stdout, stderr };
  }
}

t.test('where the file limit is too low it says so at once, with the ways out', async (t) => {
  const { code, stdout, stderr } = await run(
    'bash',
    '-c',
    'ulimit -n 5000 && exec "$0" --clients 10000',
    MILLION
  );
  t.equal(code, 2);
  t.equal(stdout, '');
  t.match(stderr, /may open 5000 files, and the server needs 12000/);
  t.match(stderr, /^ {2}sysctl -p \S+deploy\/sysctl\.conf$/m);
  t.match(stderr, /ulimit -n 12000 && /);
  t.match(stderr, /million --own-kernel --clients 10000$/m);
});

t.test('where memory is too little it says so at once', async (t) => {
  const { code, stderr } = await run('node', `${MILLION}.js`, '--clients', '900000000');
  t.equal(code, 2);
  t.match(stderr, /900,000,000 clients and their server take some 6,300,000 MB/);
});

t.test('a wrong option is named', async (t) => {
  t.match(await run(MILLION, '--clients', 'many'), { code: 2, stderr: /--clients/ });
  t.match(await run(MILLION, '--clients', '10', '--speed', '9'), { code: 2, stderr: /--speed/ });
  const size = ['--clients', '10', '--time', '1', '--most-resident', '10M'];
  t.match(await run(MILLION, ...size), { code: 2, stderr: /--most-resident/ });
  t.match(await run(OWN_KERNEL, '--speed', '9', 'true'), { code: 2, stderr: /--speed/ });
  t.match(await run(OWN_KERNEL), { code: 2, stderr: /which command\?/ });
});

t.test('the same run with few clients holds them, throws, and reports', async (t) => {
  const few = '--clients 200 --rate 200 --time 4 --json'.split(' ');
  const { code, stdout, stderr } = await run(MILLION, ...few);
  t.equal(code, 0, stderr);
  const { server, kernel, status, swarm, verdict } = JSON.parse(stdout);
  t.equal(status.clients, 200);
  t.match(swarm.account, { missing: 0, repeated: 0 });
  t.equal(swarm.account.received, swarm.account.accepted);
  t.ok(swarm.account.received > 0);
  t.ok(server.resident > 1e7 && server.peak >= server.resident);
  t.ok(server.heap > 1e6 && server.heap < 1e8);
  t.equal(kernel.sockets, 400, 'both ends of each connection are here');
  t.same(verdict, { resident: server.resident, most: 600e6, holds: true, counts: false });
});

t.test('a server that takes more memory than it may is an error', async (t) => {
  const few = ['--clients', '50', '--rate', '50', '--time', '3', '--most-resident', '10'];
  const [said, told] = await Promise.all([run(MILLION, ...few), run(MILLION, ...few, '--json')]);
  t.match(said, { code: 1, stdout: /^DOES NOT HOLD: server resident size at most 10 MB$/m });
  t.equal(told.code, 1);
  const { verdict, swarm } = JSON.parse(told.stdout);
  t.match(verdict, { most: 10e6, holds: false, counts: true });
  t.same(swarm.faults, [], 'that alone');
});

t.test('from a million clients on the verdict counts', async (t) => {
  t.same(verdictOf({ clients: 1e6 }, 600e6), {
    resident: 600e6,
    most: 600e6,
    holds: true,
    counts: true
  });
  t.match(verdictOf({ clients: 1e6 }, 600e6 + 1), { holds: false, counts: true });
  t.match(verdictOf({ clients: 1e6 - 1 }, 600e6 + 1), { holds: false, counts: false });
  t.match(verdictOf({ clients: 2, mostResident: 5e6 }, 5e6 + 1), { holds: false, counts: true });
});
