/** What a reducer of the arena is given, made by hand: lib/arena/README.md says what is in it. */

/**
 * @param {object} how
 * @param {Record<number, Record<string, number>>} how.players their inputs, by their numbers
 * @param {string[]} how.columns the inputs' names
 * @returns {object} the first argument of `reduce`
 */
export function moment({ players, columns, ...more }) {
  const entries = Object.entries(players);
  return {
    players: entries.length,
    numbers: Uint32Array.from(entries, ([number]) => Number(number)),
    fresh: new Uint8Array(entries.length).fill(1),
    inputs: Object.fromEntries(
      columns.map((name) => [name, Float64Array.from(entries, ([, input]) => input[name])])
    ),
    time: 0,
    step: 50,
    page: 'play',
    round: 1,
    settings: {},
    ...more
  };
}

/**
 * Reduces twenty times a second.
 *
 * @param {object} memory the game's: after each time it is what JSON makes of it
 * @param {number} ms
 * @param {(time: number, last: object|undefined) => object|undefined} reduceAt ends it by undefined
 */
export function playOn(memory, ms, reduceAt) {
  let last;
  for (let time = 0; time <= ms; time += 50) {
    last = reduceAt(time, last);
    const kept = JSON.parse(JSON.stringify(memory));
    for (const name of Object.keys(memory)) delete memory[name];
    Object.assign(memory, kept);
    if (last === undefined) return;
  }
}
