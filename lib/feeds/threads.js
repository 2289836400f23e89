import { Worker } from 'node:worker_threads';

/**
 * The worker threads that parse, compare, compress and fetch, so that the main loop does not. A thread that dies (a value may need more memory than it
 * has) fails its jobs, and the next job starts another.
 */

const PROGRAM = new URL('worker.js', import.meta.url);

/** What a thread may take, in MiB: a value of a megabyte, parsed a few times over, takes some 30. */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 };

/** A job whose thread has died. */
export class ThreadError extends Error {}

export class Threads {
  #most;
  #program;
  /** @type {{worker: Worker, jobs: Map<number, {resolve: Function, reject: Function}>}[]} */
  #threads = [];
  #last = 0;
  #closed = false;

  /**
   * @param {number} most threads there may be
   * @param {URL} [program] what they run: lib/feeds/worker.js
   */
  constructor(most, program = PROGRAM) {
    this.#most = most;
    this.#program = program;
  }

  /** Jobs that are under way. */
  get busy() {
    return this.#threads.reduce((sum, { jobs }) => sum + jobs.size, 0);
  }

  /** Threads that are running. */
  get count() {
    return this.#threads.length;
  }

  /** Starts all of them, and waits until each has done something: starting one takes the main loop's time. */
  async start() {
    while (this.#threads.length < this.#most) this.#start();
    await Promise.all(this.#threads.map((thread) => this.#give(thread, 'nothing', {})));
  }

  /**
   * Has a job done by the thread with the least to do.
   *
   * @param {'change' | 'compress' | 'fetch'} task see lib/feeds/worker.js
   * @param {object} job its parts; bytes in it are copied
   * @returns {Promise<object>} its outcome
   * @throws {ThreadError} when the thread has died
   */
  run(task, job) {
    if (this.#closed) return Promise.reject(new ThreadError('the server ends'));
    return this.#give(this.#choose(), task, job);
  }

  #give(thread, task, job) {
    const id = (this.#last += 1);
    return new Promise((resolve, reject) => {
      thread.jobs.set(id, { resolve, reject });
      // Threads with nothing to do do not keep the process alive.
      thread.worker.ref();
      thread.worker.postMessage({ id, task, job });
    });
  }

  #choose() {
    const least = this.#threads.reduce(
      (best, thread) => (best === undefined || thread.jobs.size < best.jobs.size ? thread : best),
      undefined
    );
    if (least !== undefined && (least.jobs.size === 0 || this.#threads.length >= this.#most)) {
      return least;
    }
    return this.#start();
  }

  #start() {
    const worker = new Worker(this.#program, { resourceLimits: MEMORY });
    const thread = { worker, jobs: new Map() };
    this.#threads.push(thread);
    worker.on('message', ({ id, outcome, error }) => {
      const job = thread.jobs.get(id);
      thread.jobs.delete(id);
      if (thread.jobs.size === 0) worker.unref();
      if (error === undefined) job.resolve(outcome);
      else job.reject(error);
    });
    let reason;
    worker.on('error', (error) => {
      reason = error;
    });
    worker.on('exit', () => {
      this.#threads = this.#threads.filter((one) => one !== thread);
      const error = new ThreadError('a worker thread has died', { cause: reason });
      for (const { reject } of thread.jobs.values()) reject(error);
    });
    return thread;
  }

  /** Ends all threads; what they have not done fails. */
  async close() {
    this.#closed = true;
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }
}
