/**
 * The differential fuzzer of the JSON check: whatever it says of some bytes, JSON.parse with the
 * stated bounds must say too.
 *
 *   node test/fuzz/json.js --seconds 600 --seed 7
 */
import { loadTestAddon } from '../support/addon.js';
import { isSprite, jsonCases } from '../support/json-cases.js';
import { mutateBytes, Random, seedsOf } from './random.js';
import { main, tryInputs } from './run.js';

const LONGEST = 4096;

const seeds = [
  ...seedsOf('json').map(({ bytes }) => bytes),
  ...jsonCases.map(({ bytes }) => bytes).filter(({ length }) => length < LONGEST)
];

const words = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '{}', '[]', '""', '"a":', ',"b":1', 'true'],
  ...['false', 'null', '0', '-0', '1', '00', '.5', '0.', 'e1', 'E+', '1e5', '-', '+', ' '],
  ...['\n', '\t', '\r', '\\u00e9', '\\ud83c\\udf88', '\\ud800', '\\u', '\\"', '\\\\', '\\x'],
  ...['//', '/**/', 'NaN', '\ufeff', 'é', '🎈', '\u2028', '[[[[[[[[', ']]]]]]]]'],
  ...['{"a":{"a":{"a":', '}}}', '01234567']
]
  .map((word) => Buffer.from(word))
  .concat(
    [[0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x80], [0xff]].map(
      (bytes) => Buffer.from(bytes)
    )
  );

/** A value of the grammar's own making, so that not all that is tried is broken. */
function grow(random, room) {
  const space = random.pick(['', '', '', ' ', '\n', '\t \r\n']);
  const kind = random.below(room > 0 ? 8 : 5);
  const many = random.below(4);
  const string = () =>
    JSON.stringify(
      String.fromCodePoint(
        ...Array.from({ length: random.below(20) }, () =>
          random.pick([
            ...[0x20, 0x22, 0x5c, 0x41, 0x7a, 0x7f, 0xe9, 0x7ff, 0x800, 0xffff, 0x1f388, 10],
            ...[0xd800, random.below(0x80)]
          ])
        )
      )
    );
  const parts = (make) => Array.from({ length: many }, make).join(`${space},`);
  switch (kind) {
    case 0:
      return space + string();
    case 1:
      return `${random.oneIn(2) ? '-' : ''}${random.below(2000)}`;
    case 2:
      return `${random.below(9)}.${random.below(99)}${random.pick(['', 'e5', 'E-07', 'e+1'])}`;
    case 3:
      return random.pick(['true', 'false', 'null']);
    case 4:
      return random.pick(['{}', '[]', '""', '0']);
    case 5:
      return `[${parts(() => grow(random, room - 1))}${space}]`;
    default:
      return `{${parts(() => `${space}${string()}:${grow(random, room - 1)}`)}${space}}`;
  }
}

/** A nest about as deep as the bound. */
function nest(random) {
  let text = random.pick(['0', '{}', '[]']);
  for (let depth = 28 + random.below(6); depth > 0; depth -= 1) {
    text = random.oneIn(2) ? `[${text}]` : `{"a":${text}}`;
  }
  return `{"a":${text}}`;
}

function invent(random) {
  switch (random.below(8)) {
    case 0:
      return Buffer.from(nest(random));
    case 1:
    case 2:
      return Buffer.from(`{"a":${grow(random, 4)}}`);
    default:
      return random.pick(seeds);
  }
}

/** Bugs for the fuzzer to find: each makes a wrong check of a right one. */
export const plants = {
  'byte-order-mark': (check) => (bytes) =>
    check(bytes.indexOf('\ufeff') === 0 ? bytes.subarray(3) : bytes),
  'leading-zero': (check) => (bytes) =>
    check(Buffer.from(bytes.toString('latin1').replace(/([[:,\s-])0+(?=\d)/g, '$1'), 'latin1')),
  surrogates: (check) => (bytes) =>
    check(Buffer.from(bytes.toString('latin1').replace(/\xed[\xa0-\xbf]/g, '\xed\x80'), 'latin1')),
  'control-character': (check) => (bytes) => check(bytes.map((byte) => (byte === 1 ? 0x41 : byte))),
  'one-too-deep': (check) => (bytes) => check(bytes, 33),
  'trailing-bytes': (check) => (bytes) => check(bytes.subarray(0, bytes.lastIndexOf('}') + 1)),
  'no-exponents': (check) => (bytes) =>
    check(bytes) && !/\d[eE]\+?\d/.test(bytes.toString('latin1'))
};

/**
 * @param {{seed: number, count?: number, seconds?: number, plant?: string}} options
 * @returns {Promise<{runs: number, good: number, failure: null|{what: string, input: string}}>}
 */
export async function fuzz({ seed, count, seconds, plant }) {
  const { isJsonObject } = loadTestAddon();
  const check = plant === undefined ? isJsonObject : plants[plant](isJsonObject);
  const random = new Random(seed);
  return tryInputs({ count, seconds }, () => {
    let bytes = invent(random);
    for (let n = random.below(4); n > 0; n -= 1) {
      bytes = mutateBytes(random, bytes, random.pick(seeds), words).subarray(0, LONGEST);
    }
    const good = check(bytes);
    const wrong = good ? 'a text that JSON.parse refuses' : 'a sprite refused';
    return { bytes, good, what: good === isSprite(bytes) ? null : wrong };
  });
}

await main(import.meta.url, fuzz, Object.keys(plants));
