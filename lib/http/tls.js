import { loadAddon } from '../base/addon.js';
import { readOptionFile } from '../base/option-file.js';

/**
 * TLS at the front door (native/http/tls.h): certificate and key, and the keys of session tickets, which outlive a
 * restart where there is a state.
 */

/** Where the ticket keys are noted. */
const TICKETS_NOTE = 'tls/tickets';

/** How often it is looked at the end of the certificate and the age of the ticket keys, in milliseconds. */
const CHECK_INTERVAL = 60_000;

const nowInSeconds = () => Math.floor(Date.now() / 1000);

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
    const doNothing = () => {};
    const reload = () => log.info('there is no certificate of TLS to read anew');
    return { port: 0, reload, certificateEnd: doNothing, close: doNothing };
  }
  // It serves no connection: it finds out what is wrong with a certificate, and makes ticket keys.
  const tls = new (loadAddon().Tls)();
  let files;

  /** Reads certificate and key; throws in one line that names the option. */
  function readFiles() {
    const pair = {
      cert: readOptionFile('tls-cert', tlsCert),
      key: readOptionFile('tls-key', tlsKey)
    };
    const fault = tls.setCertificate(pair.cert, pair.key);
    if (fault !== '') {
      throw new Error(
        `--tls-cert ${tlsCert} and --tls-key ${tlsKey} are no certificate with its key, both in PEM (${fault})`
      );
    }
    files = pair;
  }
  /** @type {() => void} */
  const serve = () => door.setTls({ ...files, tickets: tls.ticketKeys() });
  let loggedEnd;

  /** Says once that the certificate has ended, and makes new ticket keys where it is time to. */
  function checkValidity() {
    const end = tls.validUntil();
    if (end <= nowInSeconds() && end !== loggedEnd) {
      loggedEnd = end;
      const ended = new Date(end * 1000).toISOString();
      log.error({ ended }, 'the TLS certificate has ended: renew it, then reload');
    }
    if (!tls.rollTicketKeys(nowInSeconds())) return;
    pool.note(TICKETS_NOTE, tls.ticketKeys());
    serve();
  }

  readFiles();
  const [[, savedKeys] = []] = pool.notes(TICKETS_NOTE);
  if (savedKeys !== undefined) tls.takeTicketKeys(savedKeys);
  checkValidity();
  serve();
  const port = await door.listen({ host, port: tlsPort, option: 'tls-port', tls: true });
  const timer = setInterval(checkValidity, CHECK_INTERVAL).unref();
  return {
    port,
    certificateEnd: () => tls.validUntil(),
    close: () => clearInterval(timer),
    reload() {
      try {
        readFiles();
        serve();
        log.info('TLS certificate and key read anew');
        checkValidity();
      } catch (error) {
        log.error({ err: error }, 'TLS certificate and key not changed');
      }
    }
  };
}
