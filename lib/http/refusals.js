/**
 * Logs joins and refusals at `debug`: the address, the request and the reason, never an id. The rate is limited: lines
 * above the limit are only counted.
 */

/** Most lines in LOOK milliseconds. */
const MOST = 50;

/** Interval at which the events of the front door are read and the count of lines is reset, in milliseconds. */
const LOOK = 1000;

/** Reasons of refusals, by the number in native/http/log_events.h; `undefined`: the outcome is the reason. */
const WHY = [
  undefined,
  'no PROXY header',
  'too-many-connections',
  'request-timeout',
  'the answer is not read',
  'bad-request',
  'head-too-large',
  'expectation-failed'
];

/** The routes of native/http/http_reader.h, by number. */
const ROUTES = 'join poll throw leave feed feeds place status fixed arena'.split(' ');

/**
 * @typedef {object} Refusals
 * @property {(note: {from?: string, request?: string, why: string}) => void} refused logs a
 *     refusal
 * @property {(from: string) => void} joined logs a join
 * @property {(door: object, outcomes: string[]) => void} listenTo logs the events of a native door, too
 * @property {() => void} close
 */

/** Used when the log omits the level `debug`. @type {Refusals} */
export const NOTHING_TOLD = { refused() {}, joined() {}, listenTo() {}, close() {} };

/**
 * @param {import('pino').Logger} log
 * @returns {Refusals}
 */
export function createRefusals(log) {
  // A log of a surrounding program may have no levels.
  if (log.isLevelEnabled?.('debug') === false) return NOTHING_TOLD;
  const doors = [];
  let lines = 0;
  let omitted = 0;

  function tell(fields, message) {
    lines += 1;
    if (lines <= MOST) log.debug(fields, message);
    else omitted += 1;
  }
  const refused = (note) => tell(note, 'refused');
  const joined = (from) => tell({ from }, 'joined');

  const timer = setInterval(() => {
    lines = 0;
    for (const { door, outcomes } of doors) {
      const { events, omitted: more } = door.takeLogEvents();
      omitted += more;
      for (const { kind, route, outcome, from } of events) {
        if (kind > 0) refused({ from, why: WHY[kind] });
        else if (outcomes[outcome] === 'ok') joined(from);
        else refused({ from, request: ROUTES[route], why: outcomes[outcome] });
      }
    }
    if (omitted > 0) log.debug({ omitted }, 'more were refused, or joined');
    omitted = 0;
  }, LOOK).unref();

  return {
    refused,
    joined,
    listenTo(door, outcomes) {
      door.wantLogEvents();
      doors.push({ door, outcomes });
    },
    close: () => clearInterval(timer)
  };
}
