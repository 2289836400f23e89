import { loadAddon } from '../base/addon.js';
import { readOptionFile } from '../base/option-file.js';

/**
 * TLS at the front door (native/http/tls.h): certificate and key, and the keys of session tickets, which outlive a
 * restart where there is a state.
 */

/** Where the ticket keys are noted. */
const NOTE = 'tls/tickets';

/** How often it is looked at the end of the certificate and the age of the ticket keys, in milliseconds. */
const LOOK = 60_000;

const now = () => Math.floor(Date.now() / 1000);

/**
 * What a server serves TLS with.
 *
 * @typedef {object} Identity
 * @property {Buffer} cert with its chain, PEM
 * @property {Buffer} key PEM
 * @property {Buffer} tickets keys of session tickets
 */

/**
 * Opens the TLS port, if there is to be one.
 *
 * @param {object} parts
 * @param {ReturnType<import('./door.js').createDoor>} parts.door
 * @param {object} parts.options see lib/operator/options.js: tlsCert, tlsKey, tlsPort, host
 * @param {import('../torus/pool.js').Pool} parts.pool keeps the ticket keys
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, reload: () => void, close: () => void, certificateEnd: () => number | undefined}>}
 *     port 0 without TLS; `reload` reads certificate and key anew, for the handshakes from then on; `certificateEnd`
 *     in seconds since 1970
 * @throws {Error} when certificate or key can't be read or don't fit, or the port can't be had
 */
export async function openTls({ door, options, pool, log }) {
  const { tlsCert, tlsKey, host, tlsPort } = options;
  if (tlsCert === 'none') {
    const nothing = () => {};
    const reload = () => log.info('there is no certificate of TLS to read anew');
    return { port: 0, reload, certificateEnd: nothing, close: nothing };
  }
  // It serves no connection: it finds out what is wrong with a certificate, and makes ticket keys.
  const tls = new (loadAddon().Tls)();
  let files;

  /** Reads certificate and key; throws in one line that names the option. */
  function read() {
    const read = {
      cert: readOptionFile('tls-cert', tlsCert),
      key: readOptionFile('tls-key', tlsKey)
    };
    const wrong = tls.take(read.cert, read.key);
    if (wrong !== '') {
      throw new Error(
        `--tls-cert ${tlsCert} and --tls-key ${tlsKey} are no certificate with its key, both in PEM (${wrong})`
      );
    }
    files = read;
  }
  /** @type {() => void} */
  const serve = () => door.setTls({ ...files, tickets: tls.ticketKeys() });
  let said;

  /** Says once that the certificate has ended, and makes new ticket keys where it is time to. */
  function look() {
    const end = tls.validUntil();
    if (end <= now() && end !== said) {
      said = end;
      const ended = new Date(end * 1000).toISOString();
      log.error({ ended }, 'the TLS certificate has ended: renew it, then reload');
    }
    if (!tls.rollTicketKeys(now())) return;
    pool.note(NOTE, tls.ticketKeys());
    serve();
  }

  read();
  const [[, kept] = []] = pool.notes(NOTE);
  if (kept !== undefined) tls.takeTicketKeys(kept);
  look();
  serve();
  const port = await door.listen({ host, port: tlsPort, option: 'tls-port', tls: true });
  const looking = setInterval(look, LOOK).unref();
  return {
    port,
    certificateEnd: () => tls.validUntil(),
    close: () => clearInterval(looking),
    reload() {
      try {
        read();
        serve();
        log.info('TLS certificate and key read anew');
        look();
      } catch (error) {
        log.error({ err: error }, 'TLS certificate and key not changed');
      }
    }
  };
}
