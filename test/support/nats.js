import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { temporary } from './processes.js';
import { until } from './until.js';

/** A nats-server of a test's own, with its store in a folder of its own. */

const PROGRAMS = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'];

/** Where Debian's package has it. */
const PROGRAM = PROGRAMS.find((file) => existsSync(file));

/** What `t.test` is given where there is none. */
export const skip = PROGRAM ? false : 'no nats-server here';

/**
 * @param {import('tap').Test} t ends it with the test
 * @param {string} [more] of its configuration
 * @returns {Promise<NatsServer>}
 */
export async function startNats(t, more = '') {
  const folder = temporary(t);
  const server = new NatsServer(folder, more);
  await server.start();
  t.teardown(() => server.kill());
  return server;
}

class NatsServer {
  #folder;
  #more;
  #process;
  /** The same again after a restart. */
  #port = -1;

  constructor(folder, more) {
    this.#folder = folder;
    this.#more = more;
  }

  get url() {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** Its process. */
  get pid() {
    return this.#process.pid;
  }

  async start() {
    const file = join(this.#folder, 'nats.conf');
    const store = join(this.#folder, 'store');
    const jetstream = this.#more.includes('jetstream') ? '' : `jetstream { store_dir: "${store}" }`;
    writeFileSync(
      file,
      `host: 127.0.0.1\nport: ${this.#port}\nports_file_dir: "${this.#folder}"\n${jetstream}\n${this.#more}\n`
    );
    for (const old of this.#portFiles()) rmSync(old);
    this.#process = spawn(PROGRAM, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    this.#process.stderr.on('data', (text) => (said += text));
    const ports = await until(
      () => {
        if (this.#process.exitCode !== null) throw new Error(`nats-server has ended: ${said}`);
        return this.#readPorts();
      },
      () => `nats-server listens: ${said}`
    );
    this.#port = Number(new URL(ports.nats[0]).port);
    await until(
      () => said.includes('Server is ready'),
      () => `ready: ${said}`
    );
  }

  #portFiles() {
    return readdirSync(this.#folder)
      .filter((name) => name.endsWith('.ports'))
      .map((name) => join(this.#folder, name));
  }

  /** It may be written just now. */
  #readPorts() {
    const [file] = this.#portFiles();
    if (!file) return undefined;
    const text = readFileSync(file, 'utf8');
    return text.trimEnd().endsWith('}') ? JSON.parse(text) : undefined;
  }

  /** What it has stored is lost. */
  forget() {
    rmSync(join(this.#folder, 'store'), { recursive: true });
  }

  signal(name) {
    this.#process.kill(name);
  }

  async kill() {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
