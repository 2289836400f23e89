/**
 * Leaves the torus: throws on the wire get their answer, what was handed out is acked, and the
 * server is told. The loop has been halted, and its poll, if one is parked, not aborted.
 *
 * @param {object} leaving
 * @param {import('./place.js').Place} leaving.place
 * @param {import('./moves.js').Moves} leaving.requests
 * @param {import('./waits.js').Waits} leaving.waits
 * @param {import('./limits.js').Limits} leaving.limits
 * @param {() => boolean} leaving.throwsAreOver
 * @param {() => boolean} leaving.polls whether a poll is parked
 * @param {() => boolean} leaving.isOver whether the client was stopped or started meanwhile
 * @returns {Promise<boolean>} whether the server was told
 */
export function leave({ place, requests, waits, limits, throwsAreOver, polls, isOver }: {
    place: import("./place.js").Place;
    requests: import("./moves.js").Moves;
    waits: import("./waits.js").Waits;
    limits: import("./limits.js").Limits;
    throwsAreOver: () => boolean;
    polls: () => boolean;
    isOver: () => boolean;
}): Promise<boolean>;
