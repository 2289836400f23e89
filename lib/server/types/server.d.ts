import type { Options } from './options.js';

export type { Options };

/** Where the server logs to: a pino logger is one, and so is `console`. */
export interface Log {
  debug(fields: object | string, message?: string): void;
  info(fields: object | string, message?: string): void;
  warn(fields: object | string, message?: string): void;
  error(fields: object | string, message?: string): void;
}

/** Why something of a feed was not done. */
export interface FeedError extends Error {
  code: 'ERR_SPRITES_FEED';
  /** Its name in lib/http/README.md. */
  problem: string;
}

/** The live counts, all of them: lib/server/README.md has a line for each. */
export interface Status {
  clients: number;
  parked: number;
  thrown: number;
  acked: number;
  waiting: number;
  lost: number;
  /** Problems and how often there were. */
  refused: Record<string, number>;
  [name: string]: unknown;
}

/** A version of a feed. `cursor` is `none` where there is no value. */
export interface Version {
  cursor: string;
  /** Of a log there is none. */
  value?: any;
  /** Of a log: the items behind `seen`, or all that it keeps. */
  items?: any[];
  /** Of a log: items before these are gone. */
  gap?: boolean;
}

/** What a grant allows. Feeds are keys, `prefix/*`, or `*`. */
export interface Rights {
  read?: string[];
  publish?: string[];
  /** A place in the torus and in arenas, where `privateJoin` asks for it. */
  join?: boolean;
  present?: boolean;
  /** Whose it is; by it all grants of one are revoked. */
  sub?: string;
  /** By default one of its own. */
  jti?: string;
  /** How long it lasts; 3600 by default. */
  seconds?: number;
}

/** A server that runs. */
export interface Server {
  /** The port of clients. */
  readonly port: number;
  /** 0 without TLS. */
  readonly tlsPort: number;
  /** 0 without an admin port. */
  readonly adminPort: number;
  /** URLs of the page, the first from this machine, then those of its networks. */
  readonly addresses: string[];
  readonly tlsAddresses: string[];
  readonly adminAddresses: string[];
  /**
   * Publishes a value, anything that JSON can say.
   *
   * @throws {FeedError} as all five: its `problem` is the one that a client would get
   */
  publish(
    key: string,
    value: unknown
  ): Promise<{ cursor: string; watching: number; created?: boolean }>;
  /** Patches a value: an array is a JSON Patch (RFC 6902), anything else a JSON Merge Patch (RFC 7396). */
  patch(key: string, patch: unknown): Promise<{ cursor: string; watching: number }>;
  /** Appends an item, anything that JSON can say, to a log. */
  append(
    key: string,
    item: unknown
  ): Promise<{ cursor: string; watching: number; created?: boolean }>;
  /** Ends a feed. */
  remove(key: string): Promise<void>;
  /**
   * The newest version, as soon as it is not `seen`, the cursor of one before. Without `seen` that is the first one there
   * is. Nothing is fetched for it. Rejects when the server ends.
   */
  watch(key: string, seen?: string, options?: { signal?: AbortSignal }): Promise<Version>;
  /**
   * Makes a grant, signed with the first secret (`oct`) of the keys: what a client sends to read private feeds, to publish, or
   * to join.
   */
  grant(rights?: Rights): Promise<string>;
  /** As /status of the admin port. */
  status(): Status;
  /** Reads TLS's certificate and key anew, the tokens of publishers, and the keys of grants. */
  reload(): void;
  /**
   * Answers every parked poll within the drain window, keeps the state, closes every connection. Nothing of
   * the server is left when the promise is fulfilled. Calling it again gives the same promise.
   *
   * @throws {Error} when the state can't be written
   */
  close(): Promise<void>;
}

/**
 * Starts a server within this program. It reads no environment, listens to no signal, writes to no stream and
 * never ends the process.
 *
 * @throws {Error} with code `ERR_SPRITES_OPTION` for a wrong option, `ERR_SPRITES_ADDON` where the
 *     addon is not built, and the system's (`EADDRINUSE` …) where a port can't be had
 */
export function createServer(
  options?: Omit<Options, 'grants' | 'private'> & {
    /** Keys that sign grants: a file, or a JSON Web Key Set as it is (RFC 7517; `oct` and Ed25519). */
    grants?: string | { keys: object[] };
    /** Feeds that only a grant may read: keys, `prefix/*`, or `*`. */
    private?: string | string[];
    /** Silent by default. */
    log?: Log;
    /** Ends a start that waits for the state of another server. */
    signal?: AbortSignal;
    /** Tokens that may publish feeds, besides those of `publishTokenFile`. */
    publishTokens?: string[];
    /**
     * Answers what is not Sprites' own on its ports, `/` among it. Bodies are whole: a request's has at most 1 MiB (413), a
     * response's 16 MiB (500). The request's signal is aborted when the client is gone.
     */
    fetch?: (
      request: Request,
      about: { address: string; secure: boolean }
    ) => Response | Promise<Response>;
  }
): Promise<Server>;
