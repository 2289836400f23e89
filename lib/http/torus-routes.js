import { problems } from './problems.js';
import { shareableUrls } from '../base/lan-addresses.js';
import { Refusal } from '../base/refusal.js';
import { EDGES } from '../torus/pool.js';

/** The torus' routes: join, poll, throw, leave, and what a client asks about its place and its server. */

/**
 * Returns the answer to a join.
 *
 * @param {string} id
 * @param {object} options see lib/operator/options.js
 * @returns {object} `transient` is the additional port for joins, throws and leaves
 */
export function joinAnswer(id, { hold, lease, maxSprite, transientPort }) {
  const transient = transientPort > 0 ? { transient: transientPort } : {};
  return { id, hold, lease, maxSprite, ...transient };
}

/**
 * @param {object} parts pool, options, refusals and status of createRoutes
 * @param {object} parts.tools of createTools
 * @returns {Record<string, Function>} the functions that answer, by name
 */
export function torusRoutes({ pool, options, refusals, status, tools }) {
  const { requireJoinGrant, readBody, readNumber, json, jsonText, noContent } = tools;

  async function join(request) {
    await requireJoinGrant(request);
    const { address } = request;
    const { outcome, id } = await pool.join(address);
    if (outcome !== 'ok') throw new Refusal(outcome);
    refusals.noteJoin(address);
    return json(201, joinAnswer(id, options));
  }

  function poll({ path: [, id], query, park }) {
    const ack = readNumber(query, 'ack', 'bad-ack');
    const hold = readNumber(query, 'hold', 'bad-hold');
    // To the pool 0 means "no hold given"; from a client it is too short.
    if (hold === 0 || hold > options.hold) throw new Refusal('bad-hold');
    return new Promise((resolve, reject) => {
      const answer = (text) => resolve(jsonText(200, text));
      const { outcome, body, cancel } = pool.poll(id, { ack, hold }, answer);
      if (outcome !== 'ok') reject(new Refusal(outcome));
      else if (body !== undefined) answer(body);
      else park(cancel);
    });
  }

  async function throwSprite(request) {
    const [, id, edge] = request.path;
    if (!EDGES.includes(edge)) throw new Refusal('bad-edge');
    const number = readNumber(request.query, 'n', 'bad-number') ?? -1;
    const body = readBody(request, options.maxSprite, 'sprite-too-large');
    const outcome = await pool.throw(id, edge, number, body);
    if (outcome in problems) throw new Refusal(outcome);
    return json(202, { state: outcome });
  }

  async function leave({ path: [, id] }) {
    const outcome = await pool.leave(id);
    if (outcome !== 'ok') throw new Refusal(outcome);
    return noContent();
  }

  /** Returns a client's place. Refuses a client of no server, or of another. */
  async function placeOf({ path: [, id] }) {
    const found = await pool.place(id);
    if (found === null) throw new Refusal('unknown-client');
    return found;
  }

  const place = async (request) => json(200, await placeOf(request));
  const counts = async () => json(200, await status());
  const addresses = (request) => json(200, { addresses: shareableUrls(request, options.host) });

  /** Answers with the live counts of the server that has this client. */
  async function countsOf(request) {
    await placeOf(request);
    return counts();
  }

  return { join, poll, throwSprite, leave, place, counts, countsOf, addresses };
}
