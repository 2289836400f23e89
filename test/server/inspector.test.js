import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

import t from 'tap';

import { ROOT, startServer } from '../support/server.js';

/** SIGUSR1, at which Node opens its inspector to whoever may connect. */

const SAYS = 'SIGUSR1 opens no inspector here';

t.test('SIGUSR1 opens no inspector', async (t) => {
  const server = await startServer(t, { options: { drain: 0, workers: 2, 'transient-port': 0 } });
  process.kill(server.pid, 'SIGUSR1');
  const said = () => Buffer.concat(server.errors).toString();
  await server.until(() => said().split(SAYS).length === 2);
  // Had the inspector been opened, it would have said so before.
  t.notMatch(said(), /Debugger|inspector.*ws:/);
  await server.stop();
});

t.test('nor does the swarm', async (t) => {
  const server = await startServer(t, { options: { drain: 0 } });
  const child = spawn(
    'env',
    [
      ...['-u', 'NODE_OPTIONS', process.execPath, 'bin/sprites-swarm'],
      ...['park', '2', '--port', server.port, '--time', '2']
    ],
    { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] }
  );
  t.teardown(() => child.kill('SIGKILL'));
  const [ended, errors] = [once(child, 'close'), text(child.stderr)];
  await server.until(({ parked }) => parked === 2);
  child.kill('SIGUSR1');
  t.strictSame(await ended, [0, null], 'the signal is nothing to it');
  t.notMatch(await errors, /Debugger/);
  await server.stop();
});
