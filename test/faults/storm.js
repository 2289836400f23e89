import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { plainEnvironment } from '../support/cpp-build.js';
import { ROOT } from '../support/server.js';

const run = promisify(execFile);

export const storm = {
  name: 'reconnect storm',
  promise: 'all are parked again, in their old places; nothing thrown meanwhile is missing',
  async run(scene) {
    const clients = scene.short ? 2000 : 10000;
    const server = await scene.server({
      'address-connections': 0,
      'address-joins': 0,
      'address-clients': 0,
      'address-memory': 0,
      'throw-rate': 0
    });
    let out;
    try {
      out = await run(
        process.execPath,
        [
          `${ROOT}bin/sprites-swarm`,
          'storm',
          String(clients),
          '--port',
          String(server.port),
          '--rate',
          '200',
          '--time',
          '60',
          '--json',
          '--quiet'
        ],
        { env: plainEnvironment(), maxBuffer: 2 ** 26, timeout: 150_000 }
      );
    } catch (error) {
      assert.fail(
        `the swarm says: ${error.stderr || error.stdout || error.message}`.slice(0, 2000)
      );
    }
    const {
      storm,
      account,
      server: { law, after },
      connections
    } = JSON.parse(out.stdout);
    assert.equal(storm.parked, clients);
    assert.equal(account.missing, 0);
    assert.ok(law.holds, JSON.stringify(law));
    assert.equal(connections.rejoined, 0, 'everybody has kept its place');
    assert.equal(after.expired, 0);
    const { 99: most, 100: all } = storm.seconds;
    return (
      `${clients} dropped and came back: 99% parked after ${most} s, all after ${all} s; ` +
      `${account.accepted} promised, ${account.missing} missing`
    );
  }
};
