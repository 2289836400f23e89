import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import { Broker } from './broker.js';
import { Crossing } from './crossing.js';
import { feedFigures } from './open.js';
import { FeedStore, MAX_SILENCE } from './feed-store.js';
import { Membership } from './membership.js';
import { NatsLink } from './nats-link.js';
import { publicUrl } from './entry.js';
import { SIDES } from './ring.js';
import { SharedFeeds } from './shared-feeds.js';
import { SharedPresence } from './shared-presence.js';
import { SharedRevocations } from './shared-revocations.js';
import { readOptionFile } from '../base/option-file.js';
import { tagOf, tagText } from '../base/tag.js';

/**
 * A server's part in a world of many servers:
 *
 *     Broker ─entries─▶ Membership ─view─▶ Crossing ─ring─▶ native/torus
 *       ▲ └──────────────frames───────────────▲ │
 *       └────────────────frames─────────────────┘
 *     FeedStore ◀─▶ SharedFeeds ◀─▶ lib/feeds      SharedRevocations ◀─▶ lib/grants
 *     Broker ◀─▶ SharedPresence ◀─▶ native/feeds
 *
 * Broker has one connection to the NATS server (NatsLink), and FeedStore and SharedRevocations have another one, so that no
 * lease waits behind a document. The server does not wait for the world: it serves at once as if it were alone, and joins
 * when it can.
 */

/** How long a started server without a world to join is not ready, in milliseconds. */
const ALONE_READY_AFTER = 5000;

/** First version of NATS whose clusters accept only one of two writes that expect the same revision. */
const FIRST_SAFE_VERSION = '2.10.19';

/** Problems with which this server is not part of the world: its feeds are not, either. */
const EXCLUDING_PROBLEMS = ['name-taken', 'same-tag', 'other-version', 'world-full'];

/** The world of a server with `--world`: see openWorld (open.js). */
export class World {
  #name;
  #options;
  /** URL of this server for clients. */
  #url;
  #log;
  #broker;
  #crossing;
  #feeds;
  #feedStore;
  #revocations;
  #presence;
  #membership;
  /** The current view, which Crossing uses. @type {import('./ring.js').View} */
  #view;
  /** When the server began to join, by performance.now(). */
  #startedAt = Infinity;
  /** Whether a frame that could not be sent was logged. */
  #hasLoggedOversize = false;

  constructor({ options, pool, feeds, grants, directory, log }) {
    const { name } = options;
    this.#name = name;
    this.#options = options;
    this.#log = log;
    const { world: servers, worldReplicas: replicas } = options;
    const nats = { servers, replicas, ...readNatsFiles(options) };
    this.#broker = new Broker({
      ...{ ...nats, name },
      receive: {
        frame: (from, frame) => this.#crossing.receive(from, frame),
        presence: (from, message) => this.#presence.receive(from, message)
      }
    });
    this.#crossing = new Crossing({
      ...{ pool, name, log },
      send: (to, frame) => this.#send(to, frame)
    });
    const feedLink = new NatsLink({ ...nats, name: `sprites ${name} feeds`, silence: MAX_SILENCE });
    const warning = `a cluster of NATS before ${FIRST_SAFE_VERSION} loses items and patches: update it`;
    feedLink.addListener(({ info: { version } }, isNew) => {
      const isUnsafe = version.localeCompare(FIRST_SAFE_VERSION, 'en', { numeric: true }) < 0;
      if (isNew && replicas > 1 && isUnsafe) log.warn({ version }, warning);
    });
    this.#feedStore = new FeedStore(feedLink, name);
    this.#revocations = new SharedRevocations({ link: feedLink, grants, log });
    this.#feeds = new SharedFeeds({
      ...{ feeds, log, maxFeeds: options.feeds },
      store: this.#feedStore
    });
    this.#presence = new SharedPresence({
      feeds,
      isShared: (key) => this.#feeds.isShared(key),
      send: (message) => this.#broker.sendPresence(message)
    });
    this.#membership = new Membership({
      name,
      lease: options.worldLease * 1000,
      instance: this.#crossing.instance,
      previousEpoch: this.#crossing.previousLife,
      grace: graceOf(options),
      stopSending: () => this.#crossing.stopSending() || options.state === 'none',
      store: this.#broker,
      describe: () => ({ ...this.#crossing.describe(), url: this.#url }),
      prepare: () => Promise.all([this.#feeds.join(), this.#revocations.join()]),
      onChange: (membership) => {
        const before = this.#view.state;
        this.#view = membership.view();
        this.#crossing.update(this.#view);
        directory.update(this.#view);
        this.#presence.update(this.#view);
        const { state, problem, epoch } = this.#view;
        if (EXCLUDING_PROBLEMS.includes(problem?.code)) this.#feeds.leave();
        // While the name may still be leased by the last process, publications already go to the store.
        else if (before === 'alone' && state === 'joining' && !epoch) this.#feeds.join();
      },
      log
    });
    this.#view = this.#membership.view();
  }

  /**
   * Starts to join.
   *
   * @param {number} port the port that the server listens on
   */
  start(port) {
    this.#url = publicUrl(this.#options, port);
    this.#startedAt = performance.now();
    this.#feeds.start();
    this.#revocations.start();
    this.#membership.start();
  }

  /**
   * @returns {string | undefined} the problem for which a load balancer must not send clients to this server. A server
   *     that is cut off, or has stayed alone for longer than ALONE_READY_AFTER, is ready: it serves its own clients
   */
  readinessProblem() {
    const { state } = this.#membership;
    const isWaitingForWorld =
      state === 'alone' && !(performance.now() - this.#startedAt > ALONE_READY_AFTER);
    return isWaitingForWorld || state === 'joining' ? 'joining' : undefined;
  }

  /** @returns {object} its members of /status: see lib/server/README.md */
  figures() {
    const { state, problem, epoch, ring, restarting } = this.#view;
    const { waiting, bytes, servers, refused } = this.#crossing.status();
    const inRing = state === 'member' || state === 'cut-off';
    const seams = inRing ? seamsOf(ring, this.#name) : { left: [], right: [] };
    const own = { name: this.#name, ...this.#crossing.describe(), url: this.#url };
    const members = (inRing ? ring.members : [own]).map((member) => ({
      ...member,
      // Renewals update this count without a new ring.
      clients: member.name === own.name ? own.clients : this.#membership.clientsOf(member.name)
    }));
    return {
      world: {
        name: this.#name,
        state,
        problem: problem?.code ?? null,
        epoch: epoch ?? null,
        clients: members.reduce((sum, { clients }) => sum + clients, 0),
        servers: members.map(statusEntryOf),
        seams,
        restarting,
        outboxes: servers.filter((outbox) => outbox.waiting > 0),
        refused
      },
      worldMember: state === 'member' ? 1 : 0,
      worldServers: ring.size,
      worldSeams: SIDES.flatMap((side) => seams[side]).reduce(
        (sum, seam) => sum + seam.to - seam.from,
        0
      ),
      outboxSprites: waiting,
      outboxBytes: bytes,
      ...feedFigures(this.#feeds.status())
    };
  }

  /**
   * Hands over the sprites in the outboxes, and leaves the ring. Publications and revocations before `close` still reach the
   * world.
   *
   * @param {number} timeout milliseconds; after it the rest is not handed over
   */
  async leave(timeout) {
    const handOver = (_, left) =>
      Promise.all([this.#crossing.handOver(left), this.#feeds.handOver(left)]);
    try {
      await this.#membership.leave(handOver, timeout);
    } catch (error) {
      this.#log.error({ err: error }, 'world');
    }
    const { waiting: sprites } = this.#crossing.status();
    const { unstored: feeds } = this.#feeds.status();
    const { state } = this.#membership;
    this.#log[sprites + feeds > 0 ? 'warn' : 'info'](
      { state, sprites, feeds },
      'has left the world'
    );
  }

  /** Ends at once. */
  close() {
    this.#crossing.close();
    this.#feeds.close();
    this.#revocations.close();
    const closed = [this.#membership.close(), this.#feedStore.close()];
    Promise.all(closed).catch((error) => this.#log.error({ err: error }, 'world'));
  }

  /** Sends a frame. The sprites of a failed frame stay in the outbox, and are sent again. */
  #send(to, frame) {
    try {
      this.#broker.send(to, frame);
    } catch (error) {
      if (this.#hasLoggedOversize) return;
      this.#hasLoggedOversize = true;
      const text = `the NATS server takes no message of ${frame.length} bytes: see its max_payload`;
      this.#log.error({ err: error, to }, text);
    }
  }
}

/** Returns a server's entry in /status. */
const statusEntryOf = ({ name, rows, clients, url }) => ({
  name,
  rows,
  clients,
  tag: tagText(tagOf(name)),
  url: url ?? null
});

/** Returns the seams that lead to other servers. */
function seamsOf(ring, name) {
  const seams = ring.seams(name);
  const others = (side) => seams[side].filter(({ peer }) => peer !== name);
  return Object.fromEntries(SIDES.map((side) => [side, others(side)]));
}

/**
 * Returns how long the clients of a leaving server wait for it, in milliseconds from the start of its drain: until
 * --world-grace after the drain. A server without a state does not come back with its places.
 */
const graceOf = ({ state, drain, worldGrace }) =>
  state === 'none' || worldGrace === 0 ? 0 : (drain + worldGrace) * 1000;

/**
 * Reads the files of the options, for NatsLink. Refuses an invalid file: with it no NATS server would ever accept this
 * server.
 */
function readNatsFiles({ worldCredentials, worldCa, worldCertificate, worldKey }) {
  const read = (name, file, check) => {
    if (file === 'none') return undefined;
    const bytes = readOptionFile(name, file);
    try {
      check(bytes);
    } catch (error) {
      throw new Error(`--${name} ${file} can't be used (${error.message})`, { cause: error });
    }
    return bytes;
  };
  const isCertificate = (pem) => new X509Certificate(pem);
  const cert = read('world-certificate', worldCertificate, isCertificate);
  const readCredentials = () =>
    read('world-credentials', worldCredentials, (text) => {
      if (!text.includes('NKEY SEED')) throw new Error('it has no key of a user');
    });
  return {
    // Each connection reads the credentials again: they may have been rotated.
    credentials: readCredentials() && readCredentials,
    ca: read('world-ca', worldCa, isCertificate),
    cert,
    key: read('world-key', worldKey, (key) => createSecureContext({ cert, key }))
  };
}
