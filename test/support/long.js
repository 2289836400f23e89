/**
 * How much of a random history is played: the short form, which finds what earlier defects were, or the long one
 * with TEST_LONG=1 (`npm run test:all`).
 */
const LONG = process.env.TEST_LONG === '1';

/** @returns {number} the length of a history */
export const lengthOf = ({ short, long }) => (LONG ? long : short);
