/**
 * Refused requests. Those that JavaScript refuses are counted here, by problem; a native door counts its own. At `debug`
 * joins and refusals are logged: the address, the request and the reason, never an id. The rate is limited: lines above the
 * limit are only counted.
 */

/** Most lines in INTERVAL milliseconds. */
const MAX_LINES = 50;

/** Interval at which the events of the front door are read and the count of lines is reset, in milliseconds. */
const INTERVAL = 1000;

/** Reasons of refusals, by the number in native/http/log_events.h; `undefined`: the outcome is the reason. */
const REASONS = [undefined, 'no PROXY header', 'the answer is not read'];

/** The routes of native/http/http_reader.h, by number. */
const ROUTES = 'join poll throw leave feed feeds place status fixed arena'.split(' ');

/**
 * @typedef {object} Refusals
 * @property {(note: {from?: string, request?: string, why: string}) => void} noteRefusal counts and logs a refusal; `why`
 *     is the name of a problem
 * @property {() => Record<string, number>} counts returns what `noteRefusal` has counted, by problem
 * @property {(from: string) => void} noteJoin logs a join
 * @property {(door: object, outcomes: string[]) => void} watchDoor logs the events of a native door, too
 * @property {() => void} close
 */

/**
 * @param {import('pino').Logger} log
 * @returns {Refusals}
 */
export function createRefusals(log) {
  const counts = {};
  // A log of a surrounding program may have no levels.
  const debugLog = log.isLevelEnabled?.('debug') === false ? NO_LOG : openDebugLog(log);
  return {
    noteRefusal(note) {
      counts[note.why] = (counts[note.why] ?? 0) + 1;
      debugLog.write(note, 'refused');
    },
    noteJoin: (from) => debugLog.write({ from }, 'joined'),
    counts: () => counts,
    watchDoor: debugLog.watchDoor,
    close: debugLog.close
  };
}

/** Used when the log omits the level `debug`. */
const NO_LOG = { write() {}, watchDoor() {}, close() {} };

function openDebugLog(log) {
  const doors = [];
  let lines = 0;
  let omitted = 0;

  function write(fields, message) {
    lines += 1;
    if (lines <= MAX_LINES) log.debug(fields, message);
    else omitted += 1;
  }

  const timer = setInterval(() => {
    lines = 0;
    for (const { door, outcomes } of doors) {
      const { events, omitted: doorOmitted } = door.takeLogEvents();
      omitted += doorOmitted;
      for (const { kind, route, outcome, from } of events) {
        const why = REASONS[kind] ?? outcomes[outcome];
        if (why === 'ok') write({ from }, 'joined');
        else write({ from, request: ROUTES[route], why }, 'refused');
      }
    }
    if (omitted > 0) log.debug({ omitted }, 'more were refused, or joined');
    omitted = 0;
  }, INTERVAL).unref();

  return {
    write,
    watchDoor(door, outcomes) {
      door.wantLogEvents();
      doors.push({ door, outcomes });
    },
    close: () => clearInterval(timer)
  };
}
