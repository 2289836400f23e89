import { REQUEST_TIMEOUT } from './nats-link.js';
import { WorldError } from './world-error.js';

/** Most messages in one request. */
const MAX_BATCH = 500;

/** Timeout for reading all messages, in milliseconds: some 20,000 are read in a second. */
export const READ_ALL_TIMEOUT = 60_000;

/**
 * Reads every message of a stream that keeps the newest one of each subject.
 *
 * Any server of a cluster may answer, also one that lags. Therefore the last message of the leader must be among the read
 * ones, unless it was deleted.
 *
 * @param {{js: object, jsm: object}} jetstream
 * @param {string} stream
 * @param {object} consumerOptions options of the consumer: `headers_only`
 * @param {(message: object) => void} onMessage
 * @throws {WorldError}
 */
export async function readNewest({ js, jsm }, stream, consumerOptions, onMessage) {
  const newestBySubject = new Map();
  // A consumer's count of remaining messages includes deleted ones (nats-server 2.9).
  const readInfo = () => jsm.streams.info(stream);
  const { name } = await jsm.consumers.add(stream, {
    ...{ ack_policy: 'none', deliver_policy: 'all', mem_storage: true, ...consumerOptions },
    inactive_threshold: 10e9
  });
  const consumer = await js.consumers.get(stream, name);
  const { config, state } = await readInfo();
  const { messages, last_seq } = state;
  const mayLag = config.num_replicas > 1 && messages > 0;
  // On a slow line this may time out: then the last message is not required.
  const last =
    mayLag && (await jsm.streams.getMessage(stream, { seq: last_seq }).catch(() => null));
  const hasLast = () => !last || newestBySubject.get(last.subject) >= last_seq;
  for (let expectedCount = messages; newestBySubject.size < expectedCount || !hasLast();) {
    let receivedCount = 0;
    const batchSize = Math.min(MAX_BATCH, Math.max(1, expectedCount - newestBySubject.size));
    const batch = await consumer.fetch({ max_messages: batchSize, expires: REQUEST_TIMEOUT });
    for await (const message of batch) {
      receivedCount += 1;
      newestBySubject.set(message.subject, message.seq);
      onMessage(message);
    }
    // Messages may have been deleted meanwhile: a store forgets replaced ones.
    if (receivedCount === 0)
      expectedCount = Math.min(expectedCount, (await readInfo()).state.messages);
    if (receivedCount === 0 && (newestBySubject.size < expectedCount || !hasLast())) {
      throw new WorldError('unreachable', `the stream ${stream} tells not all it has`);
    }
  }
  jsm.consumers.delete(stream, name).catch(() => {}); // The consumer also ends by itself.
}
