import { once } from 'node:events';
import net from 'node:net';

import { resetSocket } from './reset-socket.js';

/**
 * The way from a server to its broker, which can be cut, hang, take its time and be narrow.
 */

/** Bytes that are on their way in one direction at the most: then whoever sends has to wait, as by a real line. */
const BUFFER = 256 * 1024;

/**
 * @param {{teardown: (end: () => void) => void}} t ends it
 * @param {() => number} port the broker's, whenever somebody connects
 * @returns {Promise<Way>}
 */
export async function startWay(t, port) {
  const way = new Way(port);
  await way.listen();
  t.teardown(() => way.close());
  return way;
}

class Way {
  #port;
  #server;
  /** @type {Set<Direction>} */
  #directions = new Set();
  #isCut = false;
  /** The only connection that is cut, by the name that it tells the broker. */
  #cutName;
  /** Milliseconds that each direction takes. */
  delay = 0;
  /** Bytes a second in each direction of a connection. */
  width = Infinity;
  /** Bytes that have come, in each direction. */
  counts = { out: 0, in: 0 };
  /** Where nothing moves: `out` to the broker, `in` from it. */
  hangs = { out: false, in: false };

  constructor(port) {
    this.#port = port;
    this.#server = net.createServer({ noDelay: true }, (client) => this.#connect(client));
  }

  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** What `--world` takes. */
  get url() {
    return `nats://127.0.0.1:${this.#server.address().port}`;
  }

  /** Every connection is reset, and so is every new one. */
  cut() {
    this.#isCut = true;
    for (const direction of this.#directions) direction.reset();
  }

  /**
   * One connection is reset, and so is each that comes for it.
   *
   * @param {string} name that it tells the broker
   */
  cutOne(name) {
    this.#cutName = name;
    for (const direction of this.#directions) if (direction.name === name) direction.reset();
  }

  /** @returns {boolean} whether the connection of that name is cut */
  isCutOne(name) {
    return name !== undefined && name === this.#cutName;
  }

  /**
   * Nothing moves any more, and nobody is told, as with a cable that is pulled.
   *
   * @param {'out' | 'in'} [side] only what goes to the broker, or what comes from it
   */
  hang(side) {
    this.hangs = side ? { ...this.hangs, [side]: true } : { out: true, in: true };
  }

  /**
   * It is slow from now on.
   *
   * @param {{delay?: number, width?: number}} how milliseconds; bytes a second
   */
  slow({ delay = 0, width = Infinity }) {
    Object.assign(this, { delay, width });
  }

  /** All is well again: what has waited goes on. */
  mend() {
    this.#isCut = false;
    this.#cutName = undefined;
    this.hangs = { out: false, in: false };
    this.slow({});
    for (const direction of this.#directions) direction.go();
  }

  close() {
    this.#server.close();
    this.cut();
  }

  #connect(client) {
    if (this.#isCut) return resetSocket(client);
    const broker = net.connect({ port: this.#port(), host: '127.0.0.1', noDelay: true });
    for (const [side, from, to] of [
      ['out', client, broker],
      ['in', broker, client]
    ]) {
      const direction = new Direction(this, side, from, to);
      this.#directions.add(direction);
      from.on('error', () => {}); // `close` follows
      from.on('close', () => {
        this.#directions.delete(direction);
        to.destroy();
      });
    }
    return undefined;
  }
}

/** One direction of a connection: pieces, each with the time at which it is there. */
class Direction {
  /** What the client has told the broker that it is called; known in the direction there alone. */
  name;
  #way;
  #side;
  #from;
  #to;
  #pieces = [];
  #bytes = 0;
  /** When the line has taken the last piece. */
  #free = 0;
  #timer;

  constructor(way, side, from, to) {
    this.#way = way;
    this.#side = side;
    this.#from = from;
    this.#to = to;
    from.on('data', (piece) => this.#take(piece));
  }

  reset() {
    clearTimeout(this.#timer);
    resetSocket(this.#from);
  }

  #take(piece) {
    const { width, delay, counts } = this.#way;
    if (this.#side === 'out') {
      this.name ??= /"name":"([^"]*)"/.exec(piece.toString('latin1', 0, 4096))?.[1];
      if (this.#way.isCutOne(this.name)) {
        this.reset();
        return;
      }
    }
    counts[this.#side] += piece.length;
    const now = performance.now();
    this.#free = Math.max(now, this.#free) + (piece.length / width) * 1000;
    this.#pieces.push({ piece, due: this.#free + delay });
    this.#bytes += piece.length;
    if (this.#bytes > BUFFER) this.#from.pause();
    this.go();
  }

  /** Hands over what is there by now. */
  go() {
    clearTimeout(this.#timer);
    if (this.#way.hangs[this.#side] || this.#to.destroyed) return;
    const now = performance.now();
    // What has begun its way before the line was mended has a time that is over soon.
    const isDue = ({ due }) =>
      due <= now || (this.#way.delay === 0 && this.#way.width === Infinity);
    while (this.#pieces.length > 0 && isDue(this.#pieces[0])) {
      const { piece } = this.#pieces.shift();
      this.#bytes -= piece.length;
      this.#to.write(piece);
    }
    if (this.#bytes <= BUFFER) this.#from.resume();
    if (this.#pieces.length > 0) {
      this.#timer = setTimeout(() => this.go(), this.#pieces[0].due - now);
    }
  }
}
