import http from 'node:http';

const TIMEOUT_MS = 10_000;
const LONGEST = 1 << 20;

/** Reads GET /status of the server under load, over one connection. */
export class StatusReader {
  #options;
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

  /** @param {{address: string, host: string, port: number}} target */
  constructor({ address, host, port }) {
    this.#options = {
      host: address,
      port,
      path: '/status',
      agent: this.#agent,
      timeout: TIMEOUT_MS,
      headers: { Host: `${host}:${port}` }
    };
  }

  /**
   * @returns {Promise<?object>} the document; null when the server answers otherwise
   * @throws {Error} when nothing answers
   */
  read() {
    return new Promise((resolve, reject) => {
      const request = http.get(this.#options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece) => {
          text += piece;
          if (text.length > LONGEST) request.destroy(new Error('an endless /status'));
        });
        response.on('end', () => resolve(parse(response.statusCode, text)));
        response.on('error', reject);
      });
      request.on('timeout', () => request.destroy(new Error('no answer in time')));
      request.on('error', reject);
    });
  }

  /** @returns {Promise<?object>} as read(), null too when nothing answers */
  async tryRead() {
    try {
      return await this.read();
    } catch {
      return null; // the figures then say that the server gave none
    }
  }

  close() {
    this.#agent.destroy();
  }
}

function parse(status, text) {
  if (status !== 200) return null;
  try {
    const document = JSON.parse(text);
    return typeof document === 'object' ? document : null;
  } catch {
    return null;
  }
}

/**
 * The server's own law: thrown = acked + waiting + lost.
 *
 * @param {?object} status
 * @returns {?{thrown: number, acked: number, waiting: number, lost: number, holds: boolean}}
 */
export function lawOf(status) {
  const names = ['thrown', 'acked', 'waiting', 'lost'];
  if (!status || !names.every((name) => name in status)) return null;
  const { thrown, acked, waiting, lost } = status;
  return { thrown, acked, waiting, lost, holds: thrown === acked + waiting + lost };
}
