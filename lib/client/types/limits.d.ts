/**
 * Something between cuts off polls that were parked for `took` ms: the hold to ask for.
 *
 * @param {number} took ms
 * @param {number} hold seconds, up to now
 * @param {Limits} limits
 * @returns {number} seconds
 */
export function shorterHold(took: number, hold: number, { holdLeast }: Limits): number;
/**
 * The longest wait after so many failures.
 *
 * @param {number} failures in a row, from 1
 * @param {number|null} clients how many the server has, where that is known
 * @param {Pick<Limits, 'backoffFirst'|'backoffLeast'|'backoffMost'>} [limits]
 * @returns {number} ms
 */
export function longestWait(failures: number, clients: number | null, limits?: Pick<Limits, "backoffFirst" | "backoffLeast" | "backoffMost">): number;
/** @typedef {typeof LIMITS} Limits */
/** @type {Readonly<Limits>} */
export const DEFAULTS: Readonly<Limits>;
export type Limits = typeof LIMITS;
declare namespace LIMITS {
    let backoffFirst: number;
    let backoffMost: number;
    let backoffLeast: number;
    let pauseMost: number;
    let requestTimeout: number;
    let proofTimeout: number;
    let pollSlack: number;
    let pollTrust: number;
    let busyLeast: number;
    let quick: number;
    let long: number;
    let attempts: number;
    let throwPatience: number;
    let numberWindow: number;
    let strayMisses: number;
    let movesMost: number;
    let leavePatience: number;
    let leaveReserve: number;
    let leaveRetry: number;
    let answerMost: number;
    let holdLeast: number;
    let holdUnknown: number;
    let feedHold: number;
    let feedAnswerMost: number;
    let feedsAtOnce: number;
}
export {};
