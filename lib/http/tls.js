import { readFileSync } from 'node:fs';

import { loadAddon } from '../base/addon.js';

/**
 * TLS at the front door (native/http/tls.h): certificate and key, and the keys of session tickets, which outlive a
 * restart where there is a state.
 */

/** Where the ticket keys are noted. */
const NOTE = 'tls/tickets';

/** How often it is looked whether the ticket keys are to be rolled, in milliseconds. */
const LOOK = 60_000;

const now = () => Math.floor(Date.now() / 1000);

/** Reads the file that an option names. */
function readOption(name, path) {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`--${name} ${path} can't be read (${error.code})`, { cause: error });
  }
}

/**
 * What a process serves TLS with.
 *
 * @typedef {object} Identity
 * @property {Buffer} cert with its chain, PEM
 * @property {Buffer} key PEM
 * @property {Buffer} tickets keys of session tickets
 */

/** Certificate, key and ticket keys of the ports by TLS of one process. */
export class Tls {
  #native = new (loadAddon().Tls)();

  /** For the native door. */
  get native() {
    return this.#native;
  }

  /**
   * Serves with these from now on; sessions that exist keep theirs.
   *
   * @param {Identity} identity
   * @returns {string} what is wrong with them, when nothing has changed; else empty
   */
  take({ cert, key, tickets }) {
    if (tickets !== undefined) this.#native.takeTicketKeys(tickets, now());
    return this.#native.take(cert, key);
  }

  /** @returns {boolean} whether there are other ticket keys from now on */
  roll() {
    return this.#native.rollTicketKeys(now());
  }

  /** @returns {Buffer} the ticket keys */
  tickets() {
    return this.#native.ticketKeys();
  }

  /** @returns {number} when the certificate ends, seconds since 1970 */
  end() {
    return this.#native.validUntil();
  }
}

/**
 * Opens the TLS port, if there is to be one. Where workers share it (`shared`), they serve it, with what was read here.
 *
 * @param {object} parts
 * @param {ReturnType<import('./door.js').createDoor>} parts.door
 * @param {object} parts.options see lib/operator/options.js: tlsCert, tlsKey, tlsPort, host
 * @param {{port: number}} parts.shared the port that workers share; 0: none
 * @param {import('../torus/pool.js').Pool} parts.pool keeps the ticket keys
 * @param {(identity: Identity) => void} parts.changed told when the ticket keys are others
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, identity: () => Identity | undefined, reload: () => void, close: () => void,
 *     certificateEnd: () => number | undefined}>} port 0 without TLS; `reload` reads certificate and key
 *     anew, for the handshakes from then on; `certificateEnd` in seconds since 1970
 * @throws {Error} when certificate or key can't be read or don't fit, or the port can't be had
 */
export async function openTls({ door, options, shared, pool, changed, log }) {
  const { tlsCert, tlsKey, host, tlsPort } = options;
  if (tlsCert === 'none') {
    const nothing = () => {};
    const reload = () => log.info('there is no TLS, and nothing to read anew');
    return { port: 0, reload, identity: nothing, certificateEnd: nothing, close: nothing };
  }
  const tls = new Tls();
  let files;

  /** Reads certificate and key; throws in one line that names the option. */
  function read() {
    const read = { cert: readOption('tls-cert', tlsCert), key: readOption('tls-key', tlsKey) };
    const wrong = tls.take(read);
    if (wrong !== '') {
      throw new Error(
        `--tls-cert ${tlsCert} and --tls-key ${tlsKey} are no certificate with its key, both in PEM (${wrong})`
      );
    }
    files = read;
  }
  const identity = () => ({ ...files, tickets: tls.tickets() });

  read();
  const [[, kept] = []] = pool.notes(NOTE);
  if (kept !== undefined) tls.take({ ...files, tickets: kept });
  function roll() {
    const rolled = tls.roll();
    if (rolled) pool.note(NOTE, tls.tickets());
    return rolled;
  }
  roll();
  const port =
    shared.port > 0 ? shared.port : await door.listen(host, tlsPort, { option: 'tls-port', tls });
  const rolling = setInterval(() => {
    if (roll()) changed(identity());
  }, LOOK).unref();
  return {
    port,
    identity,
    certificateEnd: () => tls.end(),
    close: () => clearInterval(rolling),
    reload() {
      try {
        read();
        log.info('TLS certificate and key read anew');
      } catch (error) {
        log.error({ err: error }, 'TLS certificate and key not changed');
      }
    }
  };
}
