import assert from 'node:assert/strict';

import { launch } from './launch.js';
import { untilCounts } from './until.js';

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
    const { child, ended, listening } = launch(options);
    server.child = child;
    server.#ended = ended;
    t.teardown(() => server.kill());
    ({ port: server.port } = await listening);
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
  until(holds, seconds) {
    return untilCounts(() => this.status(), holds, seconds);
  }
}
