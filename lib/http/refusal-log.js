/**
 * Logs joins and refusals at `debug`: the address, the request and the reason, never an id. The rate is limited: lines
 * above the limit are only counted.
 */

/** Most lines in INTERVAL milliseconds. */
const MAX_LINES = 50;

/** Interval at which the events of the front door are read and the count of lines is reset, in milliseconds. */
const INTERVAL = 1000;

/** Reasons of refusals, by the number in native/http/log_events.h; `undefined`: the outcome is the reason. */
const REASONS = [
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
 * @typedef {object} RefusalLog
 * @property {(note: {from?: string, request?: string, why: string}) => void} logRefusal logs a
 *     refusal
 * @property {(from: string) => void} logJoin logs a join
 * @property {(door: object, outcomes: string[]) => void} watchDoor logs the events of a native door, too
 * @property {() => void} close
 */

/** Used when the log omits the level `debug`. @type {RefusalLog} */
export const SILENT_REFUSAL_LOG = { logRefusal() {}, logJoin() {}, watchDoor() {}, close() {} };

/**
 * @param {import('pino').Logger} log
 * @returns {RefusalLog}
 */
export function createRefusalLog(log) {
  // A log of a surrounding program may have no levels.
  if (log.isLevelEnabled?.('debug') === false) return SILENT_REFUSAL_LOG;
  const doors = [];
  let lines = 0;
  let omitted = 0;

  function logLimited(fields, message) {
    lines += 1;
    if (lines <= MAX_LINES) log.debug(fields, message);
    else omitted += 1;
  }
  const logRefusal = (note) => logLimited(note, 'refused');
  const logJoin = (from) => logLimited({ from }, 'joined');

  const timer = setInterval(() => {
    lines = 0;
    for (const { door, outcomes } of doors) {
      const { events, omitted: doorOmitted } = door.takeLogEvents();
      omitted += doorOmitted;
      for (const { kind, route, outcome, from } of events) {
        if (kind > 0) logRefusal({ from, why: REASONS[kind] });
        else if (outcomes[outcome] === 'ok') logJoin(from);
        else logRefusal({ from, request: ROUTES[route], why: outcomes[outcome] });
      }
    }
    if (omitted > 0) log.debug({ omitted }, 'more were refused, or joined');
    omitted = 0;
  }, INTERVAL).unref();

  return {
    logRefusal,
    logJoin,
    watchDoor(door, outcomes) {
      door.wantLogEvents();
      doors.push({ door, outcomes });
    },
    close: () => clearInterval(timer)
  };
}
