import { createLog } from '../base/log.js';
import { UsageError } from '../base/option-help.js';
import { isKey } from '../feeds/names.js';
import { openPublisher } from '../feeds/publisher.js';
import { areTokens } from '../feeds/tokens.js';
import { readKeySet } from '../grants/keys.js';
import { isPattern } from '../grants/rights.js';
import { problems } from '../http/problems.js';
import { withProgramNames } from '../operator/program-options.js';

/** Arguments of createServer besides the options: see types/server.d.ts. */

/** Methods of a log that the server calls. */
const LEVELS = ['debug', 'info', 'warn', 'error'];

/** Cursor of a client without a value, as in the contract. */
const NO_CURSOR = 'none';

/** @returns {Error} the error for a problem with a feed */
const feedError = (problem, detail = problems[problem].detail) =>
  Object.assign(new Error(withProgramNames(detail)), { code: 'ERR_SPRITES_FEED', problem });

/** Returns the outcome, or throws its problem. */
function resultOrThrow({ problem, detail, ...rest }) {
  if (problem !== undefined) throw feedError(problem, detail);
  return rest;
}

/** Returns a value as the body of a request. @throws {Error} for a value that JSON does not have */
function bodyOf(value, problem) {
  try {
    // JSON.stringify returns undefined for some of these values.
    return Buffer.from(JSON.stringify(value) ?? '');
  } catch (error) {
    throw feedError(problem, `It is nothing that JSON can say: ${error.message.split('\n')[0]}.`);
  }
}

const checkKey = (key) => resultOrThrow(isKey(key) ? {} : { problem: 'bad-key' });

/**
 * Reads the arguments of createServer.
 *
 * @param {Parameters<import('./types/server.js').createServer>[0]} wanted
 * @returns {{log: object, signal?: AbortSignal, program: object, optionValues: object}} the arguments besides the
 *     options, and the options in `optionValues`
 * @throws {UsageError}
 */
export function readProgramArguments(wanted) {
  if (typeof wanted !== 'object' || wanted === null) {
    throw new UsageError('createServer takes an object of options, such as { port: 8080 }');
  }
  const { log = createLog('silent'), signal, ...rest } = wanted;
  const { fetch, publishTokens, grants, private: patterns, ...options } = rest;
  if (!LEVELS.every((level) => typeof log?.[level] === 'function')) {
    throw new UsageError(`log takes an object with the functions ${LEVELS.join(', ')}`);
  }
  if (fetch !== undefined && typeof fetch !== 'function') {
    throw new UsageError('fetch takes a function from a Request to a Response');
  }
  if (publishTokens !== undefined && !areTokens(publishTokens)) {
    throw new UsageError('publishTokens takes an array of tokens, of letters, digits and ._~+/-');
  }
  const isKeySet = typeof grants === 'object' && grants !== null;
  try {
    if (isKeySet) readKeySet(grants);
  } catch (error) {
    throw new UsageError(`grants: ${error.message}`, { cause: error });
  }
  if (Array.isArray(patterns) && !patterns.every(isPattern)) {
    throw new UsageError('private takes an array of keys, prefix/* or *');
  }
  const optionValues = {
    ...options,
    // The keys come from the program, not from a file.
    grants: isKeySet ? 'given' : grants,
    private: Array.isArray(patterns) ? patterns.join(',') || 'none' : patterns
  };
  const program = { fetch, publishTokens, grants: isKeySet ? grants : undefined };
  return { log, signal, program, optionValues };
}

/** Default life of a grant, in seconds. */
const DEFAULT_GRANT_SECONDS = 3600;

/**
 * @param {(rights: object) => Promise<string>} sign
 * @returns {import('./types/server.js').Server['grant']}
 */
export function programGrant(sign) {
  return (wantedRights) => {
    const { seconds = DEFAULT_GRANT_SECONDS, ...rights } = wantedRights ?? {};
    return sign({ seconds, ...rights }).catch((error) => {
      error.message = withProgramNames(error.message);
      throw error;
    });
  };
}

/**
 * The feeds as functions, with the same rules as by HTTP.
 *
 * @param {object} parts
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @param {{feedBytes: number}} parts.options
 * @returns {Pick<import('./types/server.js').Server, 'publish' | 'patch' | 'append' | 'remove' | 'watch'>}
 */
export function programFeeds({ feeds, arena, options }) {
  const publisher = openPublisher({ feeds, arena, options });
  const endedError = () => feedError('draining', 'the server has ended');

  /** @throws {Error} also where the server ended before the publication */
  async function perform(operation) {
    if (feeds.isClosedToProgram) throw endedError();
    const { problem, ...rest } = await operation();
    if (problem !== undefined && feeds.closed) throw endedError();
    return resultOrThrow({ problem, ...rest });
  }

  function publishAs(kind, key, value) {
    return perform(async () => {
      checkKey(key);
      const body = bodyOf(value, kind.endsWith('patch') ? 'bad-patch' : 'bad-value');
      if (body.length > publisher.maxBodyBytes(key))
        throw feedError(publisher.tooLargeProblem(kind));
      return publisher.publish(key, kind, body);
    });
  }

  return {
    publish: (key, value) => publishAs('value', key, value),
    patch: (key, patch) =>
      publishAs(Array.isArray(patch) ? 'json-patch' : 'merge-patch', key, patch),
    append: (key, item) => publishAs('item', key, item),
    async remove(key) {
      await perform(async () => {
        checkKey(key);
        return publisher.remove(key);
      });
    },
    async watch(key, lastCursor, watchOptions) {
      const seen = lastCursor ?? NO_CURSOR;
      const { signal } = watchOptions ?? {};
      checkKey(key);
      for (;;) {
        if (feeds.closed) throw endedError();
        signal?.throwIfAborted();
        const { cursor = NO_CURSOR, value, items, gap } = feeds.newest(key, seen) ?? {};
        if (cursor !== seen && items) return { cursor, items: JSON.parse(items), gap };
        if (cursor !== seen) return { cursor, value: value && JSON.parse(value) };
        await feeds.waitForChange(key, signal);
      }
    }
  };
}
