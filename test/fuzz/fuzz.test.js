import process from 'node:process';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import * as http from './http.js';
import { runToEnd } from '../support/processes.js';
import { lengthOf } from '../support/until.js';
import * as json from './json.js';
import { freshSeed } from './random.js';
import * as requests from './requests.js';
import * as watch from './watch.js';

/** The fuzzers, each with its number of inputs here, and with the least share of them that must be accepted. */
const fuzzers = {
  http: { ...http, count: lengthOf({ short: 8000, long: 30000 }), share: 0.15 },
  requests: { ...requests, count: lengthOf({ short: 8000, long: 30000 }), share: 0.15 },
  json: { ...json, count: lengthOf({ short: 40000, long: 400_000 }), share: 0.3 },
  watch: { ...watch, count: lengthOf({ short: 8000, long: 30000 }), share: 0.15 }
};

/** Most inputs until a planted bug is found. */
const MAX_INPUTS = 50000;

const runFuzzer = (t, name, ...args) =>
  runToEnd(t, [process.execPath, fileURLToPath(new URL(`./${name}.js`, import.meta.url)), ...args]);

for (const [name, { fuzz, plants, count, share }] of Object.entries(fuzzers)) {
  t.test(`the ${name} fuzzer`, async (t) => {
    for (const [kind, seed] of [
      ['a fixed seed', 1],
      ['a fresh seed', freshSeed()]
    ]) {
      t.test(`finds nothing from ${kind}`, async (t) => {
        t.comment(`node test/fuzz/${name}.js --count ${count} --seed ${seed}`);
        const result = await fuzz({ seed, count });
        t.equal(result.failure, null);
        t.ok(result.good / result.runs > share, 'and enough of what it tried was taken');
      });
    }

    t.test('tries the same from the same seed', async (t) => {
      t.same(await fuzz({ seed: 3, count: 1000 }), await fuzz({ seed: 3, count: 1000 }));
    });

    for (const plant of Object.keys(plants)) {
      t.test(`finds a planted bug: ${plant}`, async (t) => {
        const { failure } = await fuzz({ seed: 2, count: MAX_INPUTS, plant });
        t.ok(failure, 'it was found');
        t.comment(failure?.what);
      });
    }

    t.test('tells by its status what it found', async (t) => {
      const [plant] = Object.keys(plants);
      const [clean, faulty, wrong] = await Promise.all([
        runFuzzer(t, name, '--count', '100', '--seed', '1'),
        runFuzzer(t, name, '--count', `${MAX_INPUTS}`, '--seed', '1', '--plant', plant),
        runFuzzer(t, name, '--plant', 'no-such-bug')
      ]);
      t.equal(clean.code, 0);
      t.match(faulty, { code: 1, out: /FOUND/ });
      t.match(wrong, { code: 2, err: /usage/ });
    });
  });
}
