import { PATIENCE } from './nats-link.js';
import { WorldError } from './world-error.js';

/** Most messages in one request. */
const BATCH = 500;

/** Timeout for reading all messages, in milliseconds: some 20,000 are read in a second. */
export const PATIENCE_FOR_ALL = 60_000;

/**
 * Reads every message of a stream that keeps the newest one of each subject.
 *
 * Any server of a cluster may answer, also one that lags. Therefore the last message of the leader must be among the read
 * ones, unless it was deleted.
 *
 * @param {{js: object, jsm: object}} jetstream
 * @param {string} stream
 * @param {object} how options of the consumer: `headers_only`
 * @param {(message: object) => void} take
 * @throws {WorldError}
 */
export async function readNewest({ js, jsm }, stream, how, take) {
  const subjects = new Map();
  // A consumer's count of remaining messages includes deleted ones (nats-server 2.9).
  const look = () => jsm.streams.info(stream);
  const { name } = await jsm.consumers.add(stream, {
    ...{ ack_policy: 'none', deliver_policy: 'all', mem_storage: true, ...how },
    inactive_threshold: 10e9
  });
  const consumer = await js.consumers.get(stream, name);
  const { config, state } = await look();
  const { messages, last_seq } = state;
  const mayLag = config.num_replicas > 1 && messages > 0;
  // On a slow line this may time out: then the last message is not required.
  const last =
    mayLag && (await jsm.streams.getMessage(stream, { seq: last_seq }).catch(() => null));
  const isThere = () => !last || subjects.get(last.subject) >= last_seq;
  for (let count = messages; subjects.size < count || !isThere();) {
    let came = 0;
    const most = Math.min(BATCH, Math.max(1, count - subjects.size));
    const some = await consumer.fetch({ max_messages: most, expires: PATIENCE });
    for await (const message of some) {
      came += 1;
      subjects.set(message.subject, message.seq);
      take(message);
    }
    // Messages may have been deleted meanwhile: a store forgets replaced ones.
    if (came === 0) count = Math.min(count, (await look()).state.messages);
    if (came === 0 && (subjects.size < count || !isThere())) {
      throw new WorldError('unreachable', `the stream ${stream} tells not all it has`);
    }
  }
  jsm.consumers.delete(stream, name).catch(() => {}); // The consumer also ends by itself.
}
