/**
 * The differential fuzzer of the native readers of JSON. For the same bytes the check of a sprite
 * (native/base/json_reader.h) must agree with JSON.parse and the stated bounds. The canonical writer
 * (native/base/canonical.h) must write what JavaScript writes, or leave the bytes to JavaScript.
 *
 *   node test/fuzz/json.js --seconds 600 --seed 7
 */
import { loadCanonical } from '../../lib/base/addon.js';
import { DEPTH, ValueError } from '../../lib/client/patch.js';
import { canonical, parse } from '../../lib/feeds/canonical.js';
import { loadTestAddon } from '../support/addon.js';
import { isSprite, jsonCases, canonicalText } from '../support/json-cases.js';
import { mutateBytes, Random, seedsOf } from './random.js';
import { main, tryInputs } from './run.js';

const MAX_INPUT = 4096;

const seeds = [...seedsOf('json'), ...jsonCases]
  .map(({ bytes }) => bytes)
  .filter(({ length }) => length < MAX_INPUT);

/** Pieces of strings. The native writer accepts most of them. */
const PIECES = [
  ...['a', 'b', 'ab', '1', '10', '9', ' ', '/', '\\/', '\\n', '\\"', '\\\\', '\\b', '\x7f'],
  'somebody',
  ...['é', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '🎈', '\u2028', '\ufeff'],
  ...['\\u00e9', '\\u0080', '\\u07FF', '\\u0800', '\\uFFFF', '\\uE000', '\\ud83c\\udf88'],
  '\\u0041',
  ...['\\udbff\\udfff', '\\ud800', '\\udc00\\ud800', '\\u0000', '\\u000a']
];

/** Names of members: few, so that an object has them in any order, and now and then has one twice. */
const NAMES = ['', 'a', 'b', 'aa', 'ab', '10', '9', 'é', '\u20ac', '\ud7ff', '__proto__', 'toJSON'];
const RARE_NAMES = ['\ue000', '\uffff', '🎈', '\\u0061', '\\"', '\\/', '\\n', '\\u00e9', '\\ue000'];

/** Bytes that are no UTF-8 (RFC 3629, section 4): alone, cut short, overlong, surrogates, beyond the last character. */
const invalidUtf8 = [
  ...[[0x80], [0xbf], [0xc3], [0xc0, 0xaf], [0xc1, 0xbf], [0xc0, 0x80], [0xe2, 0x82]],
  ...[
    [0xe2, 0x82, 0xc3],
    [0xe0, 0x9f, 0xbf],
    [0xed, 0xa0, 0x80],
    [0xed, 0xbf, 0xbf]
  ],
  ...[
    [0xed, 0xa0, 0xbc, 0xed, 0xbe, 0x88],
    [0xf0, 0x9f, 0x8e],
    [0xf0, 0x8f, 0xbf, 0xbf]
  ],
  ...[
    [0xf4, 0x90, 0x80, 0x80],
    [0xf5, 0x80, 0x80, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80]
  ],
  ...[[0xfc, 0x84, 0x80, 0x80, 0x80, 0x80], [0xfe], [0xff]]
];

/** Pieces that are put into texts. */
export const words = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '{}', '[]', '""', '"a":', ',"b":1', 'true'],
  ...['false', 'null', '0', '-0', '1', '00', '.5', '0.', 'e1', 'E+', '1e5', '-', '+', ' '],
  ...['\n', '\t', '\r', '\\u00e9', '\\ud83c\\udf88', '\\ud800', '\\u', '\\"', '\\\\', '\\x'],
  ...['//', '/**/', 'NaN', '\ufeff', 'é', '🎈', '\u2028', '[[[[[[[[', ']]]]]]]]'],
  ...['{"a":{"a":{"a":', '}}}', '01234567', '.', 'e', "'", '_', 'x', 'n', '\0', '\f', '\v', '\x1f'],
  ...[
    '\u00a0',
    '\uff11',
    "\\'",
    '\\U0041',
    '\\u004',
    '\\u004g',
    'undefined',
    '-Infinity',
    'T',
    ...invalidUtf8
  ]
].map((word) => Buffer.from(word));

/** Pieces that the fuzzer puts into texts, besides `words`. */
const inserted = words.concat(
  [...PIECES, '"a":1', ',"b":', 'nul', '9007199254740993'].map((word) => Buffer.from(word))
);

const randomList = (random, below, make) => Array.from({ length: random.below(below) }, make);

/** Returns a number near the limits of the native writer in digits, zeros and size. */
function makeNumber(random) {
  const digits = (most) =>
    randomList(random, most + 1, () => random.pick('0001234567899')).join('');
  const sign = random.oneIn(4) ? '-' : '';
  const whole = random.oneIn(2) ? '0' : `${1 + random.below(9)}${digits(random.pick([2, 5, 18]))}`;
  const exact = ['9007199254740991', '9007199254740992', '9007199254740993', '1000000000000000'];
  const zeros = '0'.repeat(random.below(8));
  switch (random.below(12)) {
    case 0:
      return `${sign}${random.pick(exact)}`;
    case 1:
      return `${sign}${whole}${random.pick(['', '.5'])}${random.pick(['e', 'E+', 'e-'])}${random.below(25)}`;
    case 2:
    case 3:
    case 4:
      return `${sign}${whole}.${zeros}${digits(random.pick([2, 8, 18]))}${random.below(10)}`;
    default:
      return sign + (random.oneIn(3) ? whole : random.below(2000));
  }
}

function makeValue(random, room) {
  const space = () => (random.oneIn(6) ? random.pick([' ', '\n', '\t \r\n']) : '');
  const string = () =>
    `"${randomList(random, 8, () => random.pick(PIECES.slice(0, random.oneIn(9) ? 99 : -6))).join('')}"`;
  const name = () => `"${random.pick(random.oneIn(40) ? RARE_NAMES : NAMES)}"`;
  switch (random.below(room > 0 ? 8 : 4)) {
    case 0:
      return string();
    case 1:
      return random.pick(['true', 'false', 'null', '[]', '{}']);
    case 2:
    case 3:
      return makeNumber(random);
    case 4:
    case 5:
      return `[${space()}${randomList(random, 5, () => makeValue(random, room - 1) + space()).join(`,${space()}`)}]`;
    default:
      return `{${space()}${randomList(random, 5, () => `${name()}${space()}:${space()}${makeValue(random, room - 1)}${space()}`).join(',')}}`;
  }
}

/** The deepest nesting of a sprite. */
const SPRITE_DEPTH = 32;

/** Returns a text nested about as deep as a sprite, or a value, may be. */
function makeNested(random) {
  let text = random.pick(['0', '{}', '[]']);
  for (
    let depth = random.pick([SPRITE_DEPTH, DEPTH]) - 4 + random.below(6);
    depth > 0;
    depth -= 1
  ) {
    text = random.oneIn(2) ? `[${text}]` : `{"b":${text},"a":0}`;
  }
  return `{"a":${text}}`;
}

function makeInput(random) {
  if (random.oneIn(16)) return Buffer.from(makeNested(random));
  if (random.oneIn(3)) return random.pick(seeds);
  return Buffer.from(random.oneIn(3) ? `{"a":${makeValue(random, 4)}}` : makeValue(random, 4));
}

const { isJsonObject } = loadTestAddon();
const write = loadCanonical();

/**
 * @returns {string | null} the output of the native writer, as Latin-1; null where it leaves the bytes to JavaScript
 */
function writeNatively(bytes) {
  const out = Buffer.alloc(bytes.length);
  const length = write(bytes, DEPTH, out);
  return length === 0 ? null : out.toString('latin1', 0, length);
}

/** What JavaScript's writer makes of the bytes, and what RFC 8785 says; neither where the bytes are refused. */
function writeInJavaScript(bytes) {
  try {
    const value = parse(bytes);
    const [mine, right] = [canonical(value), canonicalText(value)].map((text) =>
      Buffer.from(text).toString('latin1')
    );
    return { mine, right };
  } catch (error) {
    if (error instanceof ValueError) return { mine: null, right: null };
    throw error;
  }
}

const wrongChecks = {
  'byte-order-mark': (check) => (bytes) =>
    check(bytes.indexOf('\ufeff') === 0 ? bytes.subarray(3) : bytes),
  'leading-zero': (check) => (bytes) =>
    check(Buffer.from(bytes.toString('latin1').replace(/([[:,\s-])0+(?=\d)/g, '$1'), 'latin1')),
  surrogates: (check) => (bytes) =>
    check(Buffer.from(bytes.toString('latin1').replace(/\xed[\xa0-\xbf]/g, '\xed\x80'), 'latin1')),
  'control-character': (check) => (bytes) => check(bytes.map((byte) => (byte === 1 ? 0x41 : byte))),
  'one-too-deep': (check) => (bytes) => check(bytes, SPRITE_DEPTH + 1),
  'trailing-bytes': (check) => (bytes) => check(bytes.subarray(0, bytes.lastIndexOf('}') + 1)),
  'no-exponents': (check) => (bytes) =>
    check(bytes) && !/\d[eE]\+?\d/.test(bytes.toString('latin1'))
};

const wrongWriters = {
  'as-it-came': (made) => (bytes) => made(bytes) && bytes.toString('latin1'),
  'minus-zero': (made) => (bytes) => made(bytes)?.replace(/(?<=[[:,])0(?=[,\]}])/, '-0') ?? null,
  'trailing-bytes-written': (made) => (bytes) =>
    made(bytes.subarray(0, bytes.lastIndexOf('}') + 1)),
  'a-digit-less': (made) => (bytes) =>
    made(bytes) ?? made(Buffer.from(bytes.toString('latin1').replace(/\d(?=[\],}])/, ''), 'latin1'))
};

/** Planted bugs that the fuzzer must find. Each turns the right reader into a wrong one. */
export const plants = { ...wrongChecks, ...wrongWriters };

/**
 * @param {{seed: number, count?: number, seconds?: number, plant?: string}} options
 * @returns {Promise<{runs: number, good: number, failure: null|{what: string, input: string}}>} `good`: number of
 *     inputs written natively
 */
export async function fuzz({ seed, count, seconds, plant }) {
  const check = wrongChecks[plant]?.(isJsonObject) ?? isJsonObject;
  const writeText = wrongWriters[plant]?.(writeNatively) ?? writeNatively;
  const random = new Random(seed);
  return tryInputs({ count, seconds }, () => {
    let bytes = makeInput(random);
    for (let n = random.oneIn(2) ? random.below(4) : 0; n > 0; n -= 1) {
      bytes = mutateBytes(random, bytes, random.pick(seeds), inserted).subarray(0, MAX_INPUT);
    }
    const text = writeText(bytes);
    const { mine, right } = writeInJavaScript(bytes);
    const wrongText = [text, mine].find((one) => one !== null && one !== right);
    let what = null;
    if (check(bytes) !== isSprite(bytes)) what = `not a sprite, or one, as JSON.parse has it`;
    else if (wrongText !== undefined) what = `${wrongText} is not its canonical form`;
    return { bytes, good: text !== null, what };
  });
}

await main(import.meta.url, fuzz, Object.keys(plants));
