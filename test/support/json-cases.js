/**
 * What the JSON check must say of which bytes: a table for the unit tests, and seeds for the
 * fuzzers. Arranged as the grammar of RFC 8259 is.
 *
 * @typedef {object} JsonCase
 * @property {string} name what is particular about it
 * @property {Buffer} bytes
 * @property {boolean} good whether it is one JSON object within the bounds
 */

const utf8 = (text) => Buffer.from(text, 'utf8');
/** `{"a":"…"}` around raw bytes. */
const inString = (...bytes) => Buffer.concat([utf8('{"a":"'), Buffer.from(bytes), utf8('"}')]);
const objects = (depth) => '{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1);
const arrays = (depth) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

const good = {
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

const bad = {
  nothing: '',
  'white space alone': ' \n',
  'an array': '[]',
  'an object in an array': '[{}]',
  'a string': '"a"',
  'a number': '1',
  null: 'null',
  true: 'true',
  'a byte order mark in front': '\ufeff{}',
  'a byte order mark behind': '{}\ufeff',
  'an object never closed': '{',
  'an object closed by a bracket': '{]',
  'an array closed by a brace': '{"a":[}',
  'an array closed by a brace behind a value': '{"a":[1}}',
  'an object closed by a bracket behind a value': '{"a":1]',
  'one brace too many': '{}}',
  'two objects': '{}{}',
  'an object and a comma': '{},',
  'an object and a NUL': '{}\0',
  'a NUL in front': '\0{}',
  'a form feed as white space': '{\f}',
  'a vertical tab as white space': '{\v}',
  'a no-break space as white space': '{\u00a0}',
  'a comma alone': '{,}',
  'a comma at the end of an object': '{"a":1,}',
  'a comma at the end of an array': '{"a":[1,]}',
  'a comma at the start of an array': '{"a":[,1]}',
  'two commas': '{"a":1,,"b":2}',
  'no comma between members': '{"a":1 "b":2}',
  'no comma between values': '{"a":[1 2]}',
  'a colon in an array': '{"a":[1:2]}',
  'a key alone': '{"a"}',
  'a key and a colon alone': '{"a":}',
  'a colon alone': '{:1}',
  'two colons': '{"a"::1}',
  'a key that is a number': '{1:1}',
  'a key that is null': '{null:1}',
  'a key without quotes': '{a:1}',
  'a key in single quotes': "{'a':1}",
  'a value in single quotes': '{"a":\'b\'}',
  'a comment': '{"a":1/**/}',
  'a line comment': '{"a":1}//',
  True: '{"a":True}',
  tru: '{"a":tru}',
  truer: '{"a":truer}',
  'nul at the end of the text': '{"a":nul',
  undefined: '{"a":undefined}',
  NaN: '{"a":NaN}',
  Infinity: '{"a":Infinity}',
  'minus Infinity': '{"a":-Infinity}',
  'a leading zero': '{"a":01}',
  'a leading zero behind a minus': '{"a":-01}',
  'two zeros': '{"a":00}',
  'a plus': '{"a":+1}',
  'two minuses': '{"a":--1}',
  'a minus alone': '{"a":-}',
  'a point first': '{"a":.5}',
  'a point behind a minus': '{"a":-.5}',
  'a point last': '{"a":1.}',
  'a point before an exponent': '{"a":1.e5}',
  'two points': '{"a":1.2.3}',
  'an exponent without digits': '{"a":1e}',
  'an exponent of a sign alone': '{"a":1e+}',
  'an exponent with two signs': '{"a":1e+-1}',
  'an exponent with a fraction': '{"a":1e1.5}',
  'two exponents': '{"a":1e1e1}',
  'a hexadecimal number': '{"a":0x1f}',
  'a big integer': '{"a":1n}',
  'an underscore between digits': '{"a":1_000}',
  'full-width digits': '{"a":\uff11}',
  'a number at the end of the text': '{"a":1',
  'a minus at the end of the text': '{"a":-',
  'a point at the end of the text': '{"a":1.',
  'an exponent at the end of the text': '{"a":1e',
  'a string never closed': '{"a":"b',
  'a string closed by an escaped quote': '{"a":"b\\"}',
  'a backslash at the end of the text': '{"a":"\\',
  'an unknown escape': '{"a":"\\x41"}',
  'an escaped single quote': '{"a":"\\\'"}',
  'an escaped line feed': '{"a":"\\\n"}',
  'an escape in capitals': '{"a":"\\N"}',
  'an escaped unit in capitals': '{"a":"\\U0041"}',
  'an escaped unit of three digits': '{"a":"\\u004"}',
  'an escaped unit with another letter': '{"a":"\\u004g"}',
  'an escaped unit with a sign': '{"a":"\\u+041"}',
  'an escaped unit at the end of the text': '{"a":"\\u004',
  'a line feed in a string': '{"a":"\n"}',
  'a carriage return in a string': '{"a":"\r"}',
  'a tab in a string': '{"a":"\t"}',
  'a NUL in a string': '{"a":"\0"}',
  'the last control character in a string': '{"a":"\x1f"}',
  'a control character in the ninth byte of a string': '{"a":"01234567\x01"}',
  'a control character in a key': '{"\x02":1}',
  'objects 33 deep': objects(33),
  'arrays 33 deep': arrays(33),
  'a thousand deep': objects(1000),
  'a hundred thousand brackets': `{"a":${'['.repeat(100000)}`,
  'too deep behind the same key, which a parser forgets': `{"a":${'['.repeat(40)}${']'.repeat(
    40
  )},"a":1}`
};

/** Bytes that are no UTF-8 (RFC 3629, section 4), as they would stand in a string. */
const broken = {
  'a continuation byte alone': [0x80],
  'the last continuation byte alone': [0xbf],
  'two bytes cut short': [0xc3],
  'two bytes, the second plain': [0xc3, 0x28],
  'an overlong slash in two bytes': [0xc0, 0xaf],
  'an overlong last plain character': [0xc1, 0xbf],
  'an overlong NUL': [0xc0, 0x80],
  'three bytes cut short': [0xe2, 0x82],
  'three bytes, the third plain': [0xe2, 0x82, 0x28],
  'three bytes, the third a lead': [0xe2, 0x82, 0xc3],
  'an overlong form in three bytes': [0xe0, 0x9f, 0xbf],
  'the first surrogate': [0xed, 0xa0, 0x80],
  'the last surrogate': [0xed, 0xbf, 0xbf],
  'a pair of surrogates (CESU-8)': [0xed, 0xa0, 0xbc, 0xed, 0xbe, 0x88],
  'four bytes cut short': [0xf0, 0x9f, 0x8e],
  'an overlong form in four bytes': [0xf0, 0x8f, 0xbf, 0xbf],
  'the first beyond the last character': [0xf4, 0x90, 0x80, 0x80],
  'a lead of a plane there is not': [0xf5, 0x80, 0x80, 0x80],
  'five bytes': [0xf8, 0x88, 0x80, 0x80, 0x80],
  'six bytes': [0xfc, 0x84, 0x80, 0x80, 0x80, 0x80],
  FE: [0xfe],
  FF: [0xff],
  'a broken byte behind a whole word': [...utf8('01234567'), 0xff]
};

/** @type {JsonCase[]} */
export const jsonCases = [
  ...Object.entries(good).map(([name, text]) => ({ name, bytes: utf8(text), good: true })),
  ...Object.entries(bad).map(([name, text]) => ({ name, bytes: utf8(text), good: false })),
  ...Object.entries(broken).flatMap(([name, bytes]) => [
    { name: `${name}, in a string`, bytes: inString(...bytes), good: false },
    {
      name: `${name}, outside`,
      good: false,
      bytes: Buffer.concat([utf8('{"a":1'), Buffer.from(bytes), utf8('}')])
    }
  ]),
  { name: 'UTF-16, little end first', bytes: Buffer.from('{"a":1}', 'utf16le'), good: false },
  {
    name: 'three bytes cut short by the end of the text',
    good: false,
    bytes: inString(0xe2, 0x82).subarray(0, 8)
  }
];

/**
 * What V8 itself says of a sprite's bytes: the judge the native check is held to.
 */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * How deep the brackets of a JSON text nest. Read from the text, not from what was parsed: a
 * parser forgets the first of two members of one name, and how deep it went.
 *
 * @param {string} text a text JSON.parse took
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
 * Whether the bytes are a sprite: one JSON object, in UTF-8, within the bound.
 *
 * @param {Uint8Array} bytes
 * @param {number} [depth] the deepest nesting allowed; the object itself is 1
 * @returns {boolean}
 */
export function isSprite(bytes, depth = 32) {
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
  return isObject && depthOf(text) <= depth;
}

/**
 * Random JSON, whose members are called what programs trip over, and patches to it.
 */

/** Names that objects inherit, that look like places, that pointers escape, and that are sorted by UTF-16. */
const NAMES = [
  ...['', 'a', 'b', '0', '1', '01', '10', '-', 'a/b', 'm~n', '~1', '~', '/', '"', '\n', ' '],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'length', 'hasOwnProperty'],
  ...['\u20ac', '\ue000', '\u{1f600}', '\ud83d', '\ude00']
];

const PLAIN = [null, true, false, 0, -0, 1, 2, 1.5, -1e-7, 1e21, 2 ** 53, '', 'a', '0', '\ud83d'];

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {number} [depth] levels it may have
 * @returns {unknown} a value as JSON.parse gives it
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

/** @returns {unknown} a value in which something is different from `value`, or nothing */
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

/** A pointer to something in a value, to where something could be, or to nothing. */
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

/** @returns {string} a value as canonical text, written as RFC 8785 says it */
export function plainly(value) {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(plainly).join()}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${plainly(value[name])}`).join()}}`;
}

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {unknown} value to which it may fit or not
 * @param {string[]} known the operations it may have
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
