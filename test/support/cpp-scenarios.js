/** The loops a C++ client can run in, as options of the probes. */
const LOOPS = [
  ['a thread', []],
  ['a descriptor', ['--fd']]
];

/**
 * Holds a C++ client to the vectors that every client is held to, in each of its loops.
 *
 * @template Scenario
 * @param {import('tap').Test} t
 * @param {Scenario[]} scenarios each with `name` and `sees`
 * @param {(t: import('tap').Test, args: string[], scenario: Scenario) => Promise<object>} play
 *     plays one with a probe of these options; what it resolves with is compared with `sees`
 */
export function playScenarios(t, scenarios, play) {
  t.jobs = 16; // most of the time they wait
  for (const [loop, args] of LOOPS) {
    for (const scenario of scenarios) {
      t.test(`${loop}: ${scenario.name}`, async (t) => {
        const seen = await play(t, args, scenario);
        for (const [what, wanted] of Object.entries(scenario.sees)) {
          t.strictSame(seen[what], wanted, what);
        }
      });
    }
  }
}
