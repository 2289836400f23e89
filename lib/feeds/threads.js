import { Worker } from 'node:worker_threads';

/**
 * The worker threads that parse, compare, compress and fetch for the main thread. A thread takes 8 MB. It starts with the
 * first job that finds no idle thread; this takes a millisecond or two of the main thread, and the job waits for 35. When a
 * thread dies (a value may need more memory than the thread has), its jobs fail, and the next job starts another thread. A
 * thread that works on one job for too long is terminated: that job fails, and other threads do its other jobs. The thread
 * itself ends when its current call returns to JavaScript: to parse, write or compress a value of the largest --feed-bytes,
 * 64 MiB, takes up to 20 s.
 */

const PROGRAM = new URL('worker.js', import.meta.url);

/** Memory limits of a thread, in MiB. A value of 1 MB that is parsed several times takes some 30. */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64 };

/** Timeout of a job, in seconds: several times that of the worst value of the default --feed-bytes. */
const JOB_TIME = 30;

/** A job whose thread has died. */
export class ThreadError extends Error {}

/** A job that took too long. */
export class JobTimeError extends ThreadError {}

export class Threads {
  #maxThreads;
  #program;
  #jobTime;
  /**
   * `underWay` has the number of the current job, `seenJob` that number at the last check, and `seenSince` the time at
   * which `seenJob` changed.
   *
   * @type {{worker: Worker, jobs: Map<number, {task: string, job: object, resolve: Function, reject: Function}>,
   *     underWay: Int32Array, seenJob: number, seenSince: number, timer?: NodeJS.Timeout}[]}
   */
  #threads = [];
  #lastId = 0;
  #closed = false;

  /**
   * @param {number} maxThreads most threads
   * @param {URL} [program] the program of a thread: lib/feeds/worker.js
   * @param {number} [jobTime] seconds
   */
  constructor(maxThreads, program = PROGRAM, jobTime = JOB_TIME) {
    this.#maxThreads = maxThreads;
    this.#program = program;
    this.#jobTime = jobTime;
  }

  /** Number of jobs under way. */
  get busy() {
    return this.#threads.reduce((sum, { jobs }) => sum + jobs.size, 0);
  }

  /** Number of running threads. */
  get count() {
    return this.#threads.length;
  }

  /**
   * Gives a job to the thread with the fewest jobs.
   *
   * @param {'change' | 'compress' | 'pack' | 'growPart' | 'readPart' | 'splitLog' | 'fetch'} task see lib/feeds/worker.js
   * @param {object} job its parts; bytes are copied
   * @returns {Promise<object>} the outcome
   * @throws {ThreadError} when the thread has died
   * @throws {JobTimeError} when the job took too long
   */
  run(task, job) {
    if (this.#closed) return Promise.reject(new ThreadError('the server ends'));
    return new Promise((resolve, reject) => {
      this.#send(this.#chooseThread(), { task, job, resolve, reject });
    });
  }

  #send(thread, pendingJob) {
    // Never 0, which means no job, and at most what fits in an Int32Array.
    const id = (this.#lastId = (this.#lastId % 0x7fffffff) + 1);
    thread.jobs.set(id, pendingJob);
    // Only a thread with a job keeps the process alive.
    thread.worker.ref();
    thread.timer ??= setInterval(() => this.#checkThread(thread), this.#jobTime * 250);
    thread.worker.postMessage({ id, task: pendingJob.task, job: pendingJob.job });
  }

  /** Stops the timer of a thread that is idle or has ended. */
  #stopTimer(thread) {
    clearInterval(thread.timer);
    thread.timer = undefined;
  }

  /** Terminates a thread that has worked on one job for too long. */
  #checkThread(thread) {
    const currentJob = Atomics.load(thread.underWay, 0);
    if (currentJob !== thread.seenJob) {
      thread.seenJob = currentJob;
      thread.seenSince = performance.now();
    }
    if (currentJob === 0 || performance.now() < thread.seenSince + this.#jobTime * 1000) return;
    const lateJob = thread.jobs.get(currentJob);
    const others = [...thread.jobs.values()].filter((one) => one !== lateJob);
    thread.jobs.clear();
    this.#stopTimer(thread);
    this.#threads = this.#threads.filter((one) => one !== thread);
    thread.worker.terminate();
    for (const one of others) this.#send(this.#chooseThread(), one);
    lateJob?.reject(new JobTimeError(`it took longer than ${this.#jobTime} s`));
  }

  #chooseThread() {
    const leastBusy = this.#threads.reduce(
      (best, thread) => (best === undefined || thread.jobs.size < best.jobs.size ? thread : best),
      undefined
    );
    if (
      leastBusy !== undefined &&
      (leastBusy.jobs.size === 0 || this.#threads.length >= this.#maxThreads)
    ) {
      return leastBusy;
    }
    return this.#start();
  }

  #start() {
    const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    const worker = new Worker(this.#program, { resourceLimits: MEMORY, workerData: shared });
    const thread = {
      worker,
      jobs: new Map(),
      underWay: new Int32Array(shared),
      seenJob: 0,
      seenSince: 0
    };
    this.#threads.push(thread);
    worker.on('message', ({ id, outcome, error }) => {
      const job = thread.jobs.get(id);
      // One that has taken too long may end all the same, before its thread does.
      if (job === undefined) return;
      thread.jobs.delete(id);
      if (thread.jobs.size === 0) {
        // A server that awaits `close` may have nothing else that keeps the process alive.
        if (!this.#closed) worker.unref();
        this.#stopTimer(thread);
      }
      if (error === undefined) job.resolve(outcome);
      else job.reject(error);
    });
    let reason;
    worker.on('error', (error) => {
      reason = error;
    });
    worker.on('exit', () => {
      this.#stopTimer(thread);
      this.#threads = this.#threads.filter((one) => one !== thread);
      const error = new ThreadError('a worker thread has died', { cause: reason });
      for (const { reject } of thread.jobs.values()) reject(error);
    });
    return thread;
  }

  /** Ends all threads; what they have not done fails. */
  async close() {
    this.#closed = true;
    // A job that takes too long from now on has no other thread begin.
    for (const thread of this.#threads) this.#stopTimer(thread);
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }
}
