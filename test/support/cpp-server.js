import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { plainEnvironment } from './cpp-build.js';
import { until } from './until.js';

const PROGRAM = fileURLToPath(new URL('../../bin/sprites', import.meta.url));

/** bin/sprites as a process that a test may kill and start again. */
export class ServerProcess {
  #ended;

  /**
   * Starts one and waits until it listens; the test's end kills it if it still runs.
   *
   * @param {import('tap').Test} t
   * @param {Record<string, string | number>} [options] of its command line, without the dashes
   */
  static async start(t, options = {}) {
    const server = new ServerProcess();
    const all = { port: 0, host: '127.0.0.1', ...options };
    // The test runner patches spawn() to have its loader ride along in every child; env drops it.
    const child = spawn(
      'env',
      [
        '-u',
        'NODE_OPTIONS',
        process.execPath,
        PROGRAM,
        ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)])
      ],
      { env: plainEnvironment(), stdio: ['ignore', 'pipe', 'inherit'] }
    );
    server.child = child;
    server.#ended = once(child, 'close');
    t.teardown(() => server.kill());
    server.port = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [, port] = /listens on http:\/\/127\.0\.0\.1:([0-9]+)\//.exec(line) ?? [];
        if (port) resolve(Number(port));
      });
      server.#ended.then(() => reject(new Error('the server ended before it listened')), reject);
    });
    server.url = `http://127.0.0.1:${server.port}`;
    return server;
  }

  /** SIGKILL, and waits until it is gone. */
  async kill() {
    this.child.kill('SIGKILL');
    await this.#ended;
  }

  /** Stops it as an operator does, and waits until it is gone. */
  async stop() {
    this.child.kill('SIGTERM');
    const [code] = await this.#ended;
    assert.equal(code, 0, 'the server stopped well');
  }

  /** @returns {Promise<string>} the id of a client that never polls */
  async join() {
    const response = await fetch(`${this.url}/join`, { method: 'POST' });
    assert.equal(response.status, 201);
    return (await response.json()).id;
  }

  /** @returns {Promise<object>} the counts, which must be conserved */
  async status() {
    const status = await (await fetch(`${this.url}/status`)).json();
    assert.equal(
      status.thrown,
      status.acked + status.waiting + status.lost,
      'sprites are conserved'
    );
    return status;
  }

  /** Looks at /status until `holds(status)`. */
  async until(holds, seconds) {
    let status;
    const look = async () => {
      status = await this.status();
      return holds(status) && status;
    };
    return until(look, () => `${holds} in ${JSON.stringify(status)}`, seconds);
  }
}
