/**
 * Bytes, each with the JSON check's expected verdict: a table for the unit tests, and seeds for the fuzzers. The order
 * is that of the grammar in RFC 8259.
 *
 * @typedef {object} JsonCase
 * @property {string} name the case in words
 * @property {Buffer} bytes
 * @property {boolean} good whether it is one JSON object within the bounds
 */

const utf8 = (text) => Buffer.from(text, 'utf8');
const objects = (depth) => '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1);
const arrays = (depth) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

const goodTexts = {
  'an empty object': '{}',
  'an object with a member': '{"a":1}',
  'white space of all four kinds everywhere': ' \t\r\n{ \t"a"\r:\n1 ,\t"b" : [ 1 , 2 ] } \r\n\t',
  'every type of value': '{"a":null,"b":true,"c":false,"d":0,"e":"","f":[],"g":{}}',
  'a repeated key': '{"a":1,"a":2}',
  'an empty key': '{"":0}',
  'a key named __proto__': '{"__proto__":{"x":1}}',
  zero: '{"a":0}',
  'minus zero': '{"a":-0}',
  'a fraction': '{"a":0.5}',
  'a long fraction': '{"a":-12.000000000000000000000001}',
  'an exponent with e': '{"a":1e9}',
  'an exponent with E and a plus': '{"a":1E+9}',
  'an exponent with a minus': '{"a":12.5e-03}',
  'an exponent of zero and zeros': '{"a":0e00}',
  'a number too large for a double': '{"a":1e999}',
  'a number of many digits': `{"a":${'9'.repeat(300)}}`,
  'each short escape': '{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t"}',
  'an escaped unit in digits of either case': '{"a":"\\u00eF\\uABCD"}',
  'an escaped NUL': '{"a":"\\u0000"}',
  'an escaped pair of surrogates': '{"a":"\\ud83c\\udf88"}',
  'an escaped surrogate alone': '{"a":"\\ud800"}',
  'an escaped key': '{"\\u0061\\"":1}',
  'DEL in a string': '{"a":"\x7f"}',
  'the last of two bytes': '{"a":"\u07ff"}',
  'the first of three bytes': '{"a":"\u0800"}',
  'the character before the surrogates': '{"a":"\ud7ff"}',
  'the character after the surrogates': '{"a":"\ue000"}',
  'the last of three bytes': '{"a":"\uffff"}',
  'the first of four bytes': '{"a":"\u{10000}"}',
  'the last character there is': '{"a":"\u{10ffff}"}',
  'a byte order mark inside a string': '{"a":"\ufeff"}',
  'line separators in a string': '{"a":"\u2028\u2029"}',
  'brackets in a string': '{"a":"[[[{{{"}',
  'strings of every length up to 40': `{"a":[${Array.from({ length: 41 }, (_, i) =>
    JSON.stringify('x'.repeat(i))
  ).join(',')}]}`,
  'a quote at every place of a word': `{${Array.from(
    { length: 17 },
    (_, i) => `"${'k'.repeat(i)}\\"":${i}`
  ).join(',')}}`,
  'objects 32 deep': objects(32),
  'arrays 32 deep': arrays(32),
  'many brackets, never deep': `{"a":[${'[],{},'.repeat(200)}0]}`
};

/** Bad texts that differ from a good one in more than one place: readers.test.js makes all changes of one place. */
const badTexts = {
  nothing: '',
  'an array': '[]',
  'a string': '"a"',
  'a number': '1',
  null: 'null',
  'a byte order mark in front': '\ufeff{}',
  'an object closed by a bracket': '{]',
  'a key in single quotes': "{'a':1}",
  'a value in single quotes': '{"a":\'b\'}',
  'a key without quotes': '{a:1}',
  'an escaped unit with a sign': '{"a":"\\u+041"}',
  'objects 33 deep': objects(33),
  'arrays 33 deep': arrays(33),
  'a hundred thousand brackets': `{"a":${'['.repeat(100000)}`,
  'too deep behind the same key, which a parser forgets': `{"a":${'['.repeat(40)}${']'.repeat(
    40
  )},"a":1}`
};

/** @type {JsonCase[]} */
export const jsonCases = [
  ...Object.entries(goodTexts).map(([name, text]) => ({ name, bytes: utf8(text), good: true })),
  ...Object.entries(badTexts).map(([name, text]) => ({ name, bytes: utf8(text), good: false })),
  { name: 'UTF-16, little end first', bytes: Buffer.from('{"a":1}', 'utf16le'), good: false },
  {
    name: 'three bytes cut short by the end of the text',
    good: false,
    bytes: Buffer.concat([utf8('{"a":"'), Buffer.of(0xe2, 0x82)])
  }
];

/**
 * V8's own verdict on a sprite's bytes: the native check must agree with it.
 */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns how deep the brackets of a JSON text nest. Reads the text, not the parsed value: the parser drops the first
 * of two members of one name, with its depth.
 *
 * @param {string} text a text that JSON.parse accepted
 * @returns {number} 0 without brackets, 1 for `{}`
 */
function depthOf(text) {
  let depth = 0;
  let deepest = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '{' || token === '[') deepest = Math.max(deepest, ++depth);
    else if (token === '}' || token === ']') depth -= 1;
  }
  return deepest;
}

/**
 * Returns whether the bytes are a sprite: one JSON object in UTF-8, nested 32 deep at most.
 *
 * @param {Uint8Array} bytes
 * @returns {boolean}
 */
export function isSprite(bytes) {
  let text;
  let value;
  try {
    text = decoder.decode(bytes);
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return false;
    throw error;
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && depthOf(text) <= 32;
}

/**
 * Random JSON values with troublesome member names, and random patches to them.
 */

/** Names that objects inherit, that look like array indexes, that pointers escape, and that UTF-16 sorts. */
const NAMES = [
  ...['', 'a', 'b', '0', '1', '01', '10', '-', 'a/b', 'm~n', '~1', '~', '/', '"', '\n', ' '],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'length', 'hasOwnProperty'],
  ...['\u20ac', '\ue000', '\u{1f600}', '\ud83d', '\ude00']
];

const PLAIN = [null, true, false, 0, -0, 1, 2, 1.5, -1e-7, 1e21, 2 ** 53, '', 'a', '0', '\ud83d'];

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {number} [depth] most levels
 * @returns {unknown} a value that JSON.parse could return
 */
export function randomValue(random, depth = 4) {
  const kind = random.below(depth === 0 ? 1 : 3);
  if (kind === 0) return random.pick(PLAIN);
  const length = random.below(6);
  if (kind === 1) return Array.from({ length }, () => randomValue(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length }, () => [random.pick(NAMES), randomValue(random, depth - 1)])
  );
}

/** @returns {unknown} a copy of `value`, mostly with some changes */
export function randomlyChanged(random, value) {
  if (typeof value !== 'object' || value === null || random.oneIn(4)) return randomValue(random, 3);
  if (Array.isArray(value)) {
    const copy = value.map((one) => (random.oneIn(3) ? randomlyChanged(random, one) : one));
    if (random.oneIn(2)) {
      copy.splice(random.below(copy.length + 1), random.below(2), randomValue(random, 2));
    }
    return copy;
  }
  const members = Object.entries(value).filter(() => !random.oneIn(6));
  if (random.oneIn(3)) members.push([random.pick(NAMES), randomValue(random, 2)]);
  return Object.fromEntries(
    members.map(([name, one]) => [name, random.oneIn(3) ? randomlyChanged(random, one) : one])
  );
}

/** Returns a pointer to an existing place in a value, to a possible new place, or to none. */
function randomPointer(random, value) {
  let pointer = '';
  for (let at = value; !random.oneIn(4);) {
    const isContainer = typeof at === 'object' && at !== null;
    const names = isContainer && random.below(5) > 0 ? Object.keys(at) : NAMES;
    const name = names.length > 0 ? random.pick(names) : '-';
    pointer += `/${random.oneIn(30) ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    at = isContainer && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return pointer;
}

/** @returns {string} a value's canonical text (RFC 8785) */
export function canonicalText(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalText(value[name])}`).join()}}`;
}

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {unknown} value the patch need not apply to it
 * @param {string[]} known operations that the patch may have
 * @returns {object[]} a JSON Patch
 */
export function randomPatch(random, value, known) {
  return Array.from({ length: 1 + random.below(3) }, () => {
    const op = random.pick(known);
    const operation = { op, path: randomPointer(random, value) };
    if (op === 'move' || op === 'copy') operation.from = randomPointer(random, value);
    else if (op !== 'remove') operation.value = randomValue(random, 2);
    return operation;
  });
}
