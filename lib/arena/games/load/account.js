/**
 * What is missing, in words: by the account of those who carry the load (reduce.js), and by the server's own,
 * where others' desktops are in the torus, at which a sprite may land: here, or at another server of its world.
 */

const many = (count) => (count === 1 ? '1 sprite' : `${count.toLocaleString('en')} sprites`);

/**
 * @param {?object} value of the reduced feed
 * @param {{clients: number, lost: number, crossedOut?: number}} status of the server, now
 * @param {{lost: number, crossedOut?: number}} first the same, when it was first looked at
 * @returns {{count: ?number, is: 'none'|'good'|'bad'|'open', words: string}}
 */
export function account(value, status, first) {
  if (value === null) return { count: null, is: 'none', words: 'Missing: nothing is counted yet' };
  const { missing, counted, torn, members } = value;
  const strangers = Math.max(0, status.clients - members);
  const crossed = (status.crossedOut ?? 0) > (first.crossedOut ?? 0);
  const elsewhere = (strangers > 0 || crossed) && missing > 0;
  const count = elsewhere ? Math.min(missing, Math.max(0, status.lost - first.lost)) : missing;
  const of = `of ${many(counted)} that have had their time`;
  const gone = torn > 0 ? `, and ${torn} went without a last report` : '';
  if (count === 0) {
    const landed = elsewhere ? `; ${many(missing)} landed at others’ desktops` : '';
    return { count, is: 'good', words: `Missing: 0 ${of}${landed}${gone}` };
  }
  if (torn > 0) return { count, is: 'open', words: `Missing: at most ${count} ${of}${gone}` };
  return { count, is: 'bad', words: `Missing: ${count} ${of}` };
}
