import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { request, Wire } from '../support/http.js';
import { childrenOf } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** How long a worker may take to end: the bounds on those that wait, and on those that hang. */

const NOBODY = '11111111-2222-8333-8444-000000000000';

/** Whether a process is there; one that nobody has buried is not. */
function lives(pid) {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

t.test(
  'a stopping worker waits a little for what is arriving, and one that hangs is killed',
  async (t) => {
    const server = await startServer(t, {
      options: { workers: 2, 'transient-port': 0, drain: 0, 'log-level': 'error' }
    });
    const { id, transient } = (await server.ask('POST', '/join')).body;
    await server.leave(id);
    const [hanging, waiting] = childrenOf(server.pid);
    // Enough that each worker has some; the answer says that it has.
    const halves = [];
    for (let i = 0; i < 24; i += 1) {
      const wire = await Wire.open(transient);
      t.teardown(() => wire.destroy());
      wire.send(request('POST', `/leave/${NOBODY}`));
      await wire.read();
      wire.send(`POST /leave/${NOBODY} HTTP/1.1\r\nHost: x\r\n`);
      halves.push(wire);
    }
    process.kill(hanging, 'SIGSTOP');
    t.teardown(() => {
      if (lives(hanging)) process.kill(hanging, 'SIGKILL');
    });
    server.child.kill('SIGTERM');
    while (lives(waiting)) await pause(5);
    t.ok(lives(hanging), 'the one that has requests under way is gone before the other is killed');
    t.same(await server.ended(), { code: 0, signal: null }, 'neither holds the server up');
    t.notOk(lives(hanging));
    for (const wire of halves) await wire.closed();
  }
);

t.test('a worker that hangs is noticed, told of and replaced', async (t) => {
  const server = await startServer(t, {
    options: {
      ...{ workers: 2, 'transient-port': 0, drain: 0 },
      ...{ 'admin-port': 0, 'admin-host': '127.0.0.1', 'log-level': 'warn' }
    }
  });
  const [, admin] = /:([0-9]+)\/metrics/.exec(server.lines.join('\n'));
  const ready = async () => (await fetch(`http://127.0.0.1:${admin}/readyz`)).status;
  t.equal(await ready(), 200);
  const [hanging] = childrenOf(server.pid);
  process.kill(hanging, 'SIGSTOP');
  t.teardown(() => {
    if (lives(hanging)) process.kill(hanging, 'SIGKILL');
  });
  while ((await ready()) === 200) await pause(50);
  t.ok(lives(hanging), 'said before it is given up');
  while ((await ready()) !== 200) await pause(50);
  t.notOk(lives(hanging));
  await server.until(({ workers, workerDeaths }) => workers === 2 && workerDeaths === 1);
  const said = Buffer.concat(server.errors)
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  t.match(said, [
    { msg: 'a worker does not answer', worker: hanging },
    { msg: 'a worker hangs, and is ended', worker: hanging },
    { msg: 'a worker is gone; another one starts', signal: 'SIGKILL' }
  ]);
  await server.stop();
});

/** How often a process has gone to sleep so far. */
function sleepsOf(pid) {
  return Number(
    /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]
  );
}

t.test('a server with workers and nothing to do sleeps', async (t) => {
  const server = await startServer(t, { options: { workers: 2, drain: 0 } });
  const pids = [server.pid, ...childrenOf(server.pid)];
  // One that was looking for work to do each millisecond woke a thousand times a second.
  for (const pid of pids) {
    await until(async () => {
      const [before, begin] = [sleepsOf(pid), performance.now()];
      await pause(500);
      const seconds = (performance.now() - begin) / 1000;
      return (sleepsOf(pid) - before) / seconds < 100;
    }, 'it is at rest');
  }
  await server.stop();
});

t.test('the polls of workers that are killed are parked no more, and then again', async (t) => {
  const server = await startServer(t, { options: { workers: 2, drain: 0 } });
  const ids = [];
  for (let i = 0; i < 12; i += 1) ids.push(await server.join());
  const parked = [];
  for (const id of ids) parked.push(await server.park(id));
  t.equal((await server.status()).parked, ids.length);
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
  await server.until((status) => status.parked === 0);
  for (const { wire } of parked) await wire.closed();
  for (const id of ids) t.equal((await server.throw(id, 'left')).body.state, 'queued');
  for (const id of ids) {
    const { body } = await server.poll(id);
    t.match(body, { seq: 1, sprites: [{ seq: 1, from: 'right' }] });
    await server.park(id, 'ack=1');
  }
  const { clients, acked, expired } = await server.until((s) => s.parked === ids.length);
  t.strictSame({ clients, acked, expired }, { clients: 12, acked: 12, expired: 0 });
  await server.leaveNothing();
  await server.stop();
});
