import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { loadCanonical } from '../../lib/base/addon.js';
import { applyPatch, DEPTH, freeze } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { change } from '../../lib/feeds/change.js';
import { compare } from '../../lib/feeds/compare.js';
import { randomOf } from '../fuzz/random.js';
import { lengthOf } from '../support/until.js';
import { randomlyChanged, randomPatch, randomValue } from '../support/json-cases.js';

/**
 * The change that a publication makes to a feed, as the worker threads compute it.
 */

const require = createRequire(import.meta.url);
const bytes = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const MOST = 100000;

/** Number of random inputs in each test. */
const PAIRS = lengthOf({ short: 5000, long: 20_000 });

const apply = (before, kind, body) =>
  change({
    key: 'k',
    cursor: 'e1-2',
    kind,
    body: bytes(body),
    before: before === undefined ? undefined : bytes(canonical(before)),
    patched: true,
    most: MOST,
    gzip: false
  });

const textOf = (outcome) => Buffer.from(outcome.value).toString();

for (const file of ['tests.json', 'spec_tests.json']) {
  t.test(`JSON Patch: the public test suite, ${file}`, async (t) => {
    for (const { doc, patch, expected, error, disabled, comment } of require(
      `json-patch-test-suite/${file}`
    )) {
      if (disabled || patch === undefined) continue;
      const outcome = apply(doc, 'json-patch', patch);
      const why = `${comment ?? ''} ${JSON.stringify(patch)}`;
      if (error !== undefined) {
        t.match(outcome.problem, /^(bad-patch|patch-conflict)$/, why);
      } else {
        const after = outcome.unchanged ? canonical(doc) : textOf(outcome);
        t.equal(after, canonical(expected ?? doc), why);
      }
    }
  });
}

t.test('JSON Patch: the vectors that every client is held to as well', async (t) => {
  const { patches, publications } = JSON.parse(
    readFileSync(new URL('../vectors/feeds.json', import.meta.url))
  );
  for (const { why, value, patch, result, problem } of [...patches, ...publications]) {
    const outcome = apply(value, 'json-patch', patch);
    t.equal(outcome.problem, problem, why);
    if (problem !== undefined) continue;
    t.equal(outcome.unchanged ? canonical(value) : textOf(outcome), canonical(result), why);
  }
});

t.test('merge patches: the examples of RFC 7396', async (t) => {
  const examples = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"a":1,"e":null}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    ['{}', '{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}']
  ];
  for (const [before, patch, after] of examples) {
    t.equal(textOf(apply(JSON.parse(before), 'merge-patch', patch)), after, `${before} ${patch}`);
  }
});

t.test('canonical JSON: the rules of RFC 8785, natively but for what is rare', async (t) => {
  const write = loadCanonical();
  const natively = (text, depth = DEPTH) => {
    const out = Buffer.alloc(Buffer.byteLength(text));
    return out.toString('utf8', 0, write(Buffer.from(text), depth, out));
  };
  const written = {
    ' { "b" : [ 1 , -2.50 , 0.000001 ] ,\t"a":null,"":{ } }\r\n':
      '{"":{},"a":null,"b":[1,-2.5,0.000001]}',
    '[-0,0.0,-0.00,10,1.0,9007199254740992,123456789.012345]':
      '[0,0,0,10,1,9007199254740992,123456789.012345]',
    '{"é":"\\u00e9\\/\\n\\ud83c\\udf88","z":{"d":{"y":1,"x":2},"c":3}}':
      '{"z":{"c":3,"d":{"x":2,"y":1}},"é":"é/\\n🎈"}',
    '{"10":1,"9":2,"__proto__":{"toJSON":1},"1":3}':
      '{"1":3,"10":1,"9":2,"__proto__":{"toJSON":1}}',
    '[1e2,-12.50e1,9007199254740993,0.1234567890123456,333333333.33333329,0.00000000100,-0E0,-0.0e-7]':
      '[100,-125,9007199254740992,0.1234567890123456,333333333.3333333,1e-9,0,0]',
    '[-1.2345678901234567e-7,1.50e+0021,123456789012345678901,0.00000123456789012345678]':
      '[-1.2345678901234566e-7,1.5e+21,123456789012345680000,0.0000012345678901234567]',
    true: 'true'
  };
  const rare = {
    '{"\\u20ac":1,"\\r":2,"1":3}': '{"\\r":2,"1":3,"€":1}',
    '[1e3]': '[1000]',
    '[1e21]': '[1e+21]',
    '[1e-400]': '[0]',
    '"\\u0041\\u00e4\\/\\u0001"': '"Aä/\\u0001"',
    '"\\ud800"': '"\\ud800"',
    '{"a":1,"b":2,"a":3}': '{"a":3,"b":2}',
    '{"\ue000":1}': '{"\ue000":1}',
    '{"\\n":1}': '{"\\n":1}'
  };
  for (const [given, expected] of Object.entries({ ...written, ...rare })) {
    t.equal(textOf(apply(undefined, 'value', given)), expected, given);
    t.equal(natively(given), given in rare ? '' : expected, `natively ${given}`);
  }
  for (const none of ['1e400', '{"a"', '']) t.equal(natively(none), '', none);
  t.equal(natively('[[1]]', 2), '[[1]]');
  t.equal(natively('[[1]]', 1), '', 'deeper than it may');
});

t.test('a patch is made where one is asked for', async (t) => {
  const job = { key: 'k', cursor: 'e1-2', kind: 'value', most: MOST, gzip: false };
  const b = 'x'.repeat(100);
  const [before, body] = [bytes({ a: 1, b }), bytes({ b, a: 3 })];
  const patched = change({ ...job, body, before, patched: true });
  t.equal(Buffer.from(patched.patch).toString(), '{"op":"replace","path":"/a","value":3}');
  const given = {
    'json-patch': [
      { op: 'test', path: '/a', value: 1 },
      { op: 'replace', path: '/a', value: 3 }
    ],
    'merge-patch': { a: 3 }
  };
  for (const [kind, body] of Object.entries(given)) {
    t.strictSame(change({ ...job, kind, body: bytes(body), before }).patch, patched.patch, kind);
  }
  const whole = change({ ...job, body, patched: false });
  t.equal(textOf(whole), textOf(patched));
  t.equal(whole.patch.length, 0);
});

t.test('what compare finds leads from one value to the other at random', async (t) => {
  const random = randomOf(t);
  let wrong = 0;
  for (let i = 0; i < PAIRS; i += 1) {
    const before = freeze(randomValue(random));
    const after = random.oneIn(3) ? randomValue(random) : randomlyChanged(random, before);
    const patch = compare(before, after);
    const same = canonical(before) === canonical(after);
    // The patch goes through its text, as when it is sent.
    const text = canonical(applyPatch(before, JSON.parse(JSON.stringify(patch))));
    if (text !== canonical(after) || (patch.length === 0) !== same) {
      t.comment(JSON.stringify({ before, after, patch }));
      wrong += 1;
    }
  }
  t.equal(wrong, 0);
});

t.test('any patch makes JSON or is refused at random', async (t) => {
  const random = randomOf(t);
  const known = ['add', 'remove', 'replace', 'move', 'copy', 'test'];
  const seen = { 'bad-patch': 0, 'patch-conflict': 0, undefined: 0 };
  let wrong = 0;
  for (let i = 0; i < PAIRS; i += 1) {
    const before = randomValue(random);
    const patch = randomPatch(random, before, known);
    const outcome = apply(before, 'json-patch', patch);
    seen[outcome.problem] += 1;
    if (outcome.problem !== undefined || outcome.unchanged) continue;
    const text = textOf(outcome);
    if (canonical(JSON.parse(text)) !== text) {
      t.comment(JSON.stringify({ before, patch, text }));
      wrong += 1;
    }
  }
  t.equal(wrong, 0);
  for (const [problem, times] of Object.entries(seen))
    t.ok(times > PAIRS / 40, `${problem}: ${times}`);
  t.strictSame(Object.keys(Object.prototype), [], 'and no prototype has anything of it');
});

t.test('arrays are aligned: what is put in front is one operation', async (t) => {
  const events = Array.from({ length: 100 }, (_, i) => ({ minute: i, text: `event ${i}` }));
  const fresh = { minute: 100, text: 'goal' };
  t.strictSame(compare({ events }, { events: [fresh, ...events] }), [
    { op: 'add', path: '/events/0', value: fresh }
  ]);
  t.equal(compare(events, [fresh, ...events.slice(0, 99)]).length, 2, 'and one falls off the end');
});

t.test(
  'arrays are aligned as long as that takes no more than some tenths of a second',
  async (t) => {
    const list = Array.from({ length: 400 }, (_, i) => i % 10);
    const changed = ['first', ...list.slice(0, -1), 'last'];
    const lists = (count, one) => Array.from({ length: count }, () => one);
    const patch = compare(lists(50, list), lists(50, changed));
    t.equal(patch.length, 50 * 2, 'one comes first, the last changes');
    t.equal(
      compare(lists(300, list), lists(300, changed)),
      null,
      'most numbers of too many differ'
    );
  }
);

t.test('no patch of more than 10,000 operations is made, or taken', async (t) => {
  const long = Array.from({ length: 20000 }, (_, i) => i);
  t.ok(compare(long, long.toReversed()) === null);
  const operations = Array.from({ length: 10001 }, () => ({ op: 'test', path: '', value: 1 }));
  t.match(apply(1, 'json-patch', operations), { problem: 'bad-patch', detail: /10000/ });
  t.equal(apply(1, 'json-patch', operations.slice(1)).unchanged, true);
});

t.test('no patch is made that is longer than the value', async (t) => {
  const before = { ['long'.repeat(1000)]: Array(500).fill(0) };
  const outcome = apply(before, 'value', { ['long'.repeat(1000)]: Array(500).fill(1) });
  t.equal(outcome.patch.length, 0, 'the name is in each of 500 paths');
});

/** Returns a list of an operation, repeated `count` times. */
const times = (count, operation) => Array.from({ length: count }, () => operation);

t.test('how many elements operations move along is bounded', async (t) => {
  const list = (length) => Array(length).fill(1);
  const tooLong = { problem: 'bad-patch', detail: /^Operation [0-9]{4}: it takes too long/ };
  const move = (path) => times(10000, { op: 'move', from: '/0', path });
  t.match(apply(list(30000), 'json-patch', move('/29999')), tooLong);
  t.match(apply(list(30000), 'json-patch', move('/-')), tooLong);
  t.equal(apply(list(10000), 'json-patch', move('/9999')).unchanged, true);
  const add = { op: 'add', path: '/0', value: 1 };
  t.match(apply(list(40000), 'json-patch', times(10000, add)), tooLong);
  t.throws(() => applyPatch(list(40000), times(10000, add)), /takes too long/, 'in a client, too');
  const last = { ...add, path: '/-' };
  t.equal(apply(list(30000), 'json-patch', times(10000, last)).problem, undefined);
});

t.test('10,000 operations on a large part cost no copy of it each', async (t) => {
  const part = Array.from({ length: 30000 }, (_, i) => i % 7);
  const there = { op: 'move', from: '/a/part', path: '/b/part' };
  const back = { op: 'move', from: there.path, path: there.from };
  const outcome = apply({ a: { part }, b: {} }, 'json-patch', times(5000, [there, back]).flat());
  t.equal(outcome.unchanged, true, 'a copy each would take minutes');
  const wide = Object.fromEntries(part.map((one, i) => [`name${i}`, one]));
  const set = { op: 'replace', path: '/name0', value: 7 };
  t.equal(applyPatch(wide, times(10000, set)).name0, 7, 'nor is the object they change');
});

t.test('what is copied is bounded by what a value may have', async (t) => {
  const whole = [
    { op: 'add', path: '', value: ['x'.repeat(1000)] },
    ...times(40, { op: 'copy', from: '', path: '/-' })
  ];
  t.equal(apply([], 'json-patch', whole).problem, 'feed-too-large', 'doubled 40 times');
  const name = 'n'.repeat(1000);
  const named = [...times(200, { op: 'copy', from: '/a', path: '/b' })];
  t.equal(apply({ a: { [name]: 1 } }, 'json-patch', named).problem, 'feed-too-large', 'names too');
});

t.test('what nests deep is refused, however deep, and whatever would look at it', async (t) => {
  const deep = (levels, [open, close] = '[]') => open.repeat(levels) + close.repeat(levels);
  const inObjects = (levels, last) => `${'{"a":'.repeat(levels)}${last}${'}'.repeat(levels)}`;
  t.equal(apply(1, 'value', deep(DEPTH)).problem, undefined);
  t.equal(apply([], 'merge-patch', inObjects(DEPTH, 1)).problem, undefined);
  for (const levels of [DEPTH + 1, 100000]) {
    const problemOf = (kind, body, before = {}) => apply(before, kind, body).problem;
    t.equal(problemOf('value', deep(levels)), 'bad-value');
    t.equal(problemOf('value', inObjects(levels, 1)), 'bad-value');
    t.equal(problemOf('merge-patch', inObjects(levels, 1)), 'bad-patch');
    t.equal(problemOf('merge-patch', inObjects(levels, null)), 'bad-patch');
    t.equal(problemOf('merge-patch', `{"a":${deep(levels)}}`), 'bad-patch');
    t.equal(problemOf('json-patch', deep(levels)), 'bad-patch');
    for (const op of ['add', 'replace', 'test']) {
      const operation = `[{"op":"${op}","path":"","value":${deep(levels)}}]`;
      t.equal(problemOf('json-patch', operation), 'bad-patch', op);
      const elsewhere = `[{"op":"add","path":"/b","value":1,"x":${deep(levels)}}]`;
      t.equal(problemOf('json-patch', elsewhere), undefined, 'it is not looked at');
    }
  }
  // Each pair of operations moves the value one level down.
  const down = [
    { op: 'move', from: '/a', path: '/b/a' },
    { op: 'move', from: '/b', path: '/a' }
  ];
  const empty = { op: 'add', path: '/b', value: {} };
  const deeper = times(3000, [...down, empty]).flat();
  for (const last of [
    { op: 'test', path: '/a', value: {} },
    { op: 'copy', from: '/a', path: '/c' },
    { op: 'remove', path: '/b' }
  ]) {
    const outcome = apply({ a: {}, b: {} }, 'json-patch', [...deeper, last]);
    t.match(outcome.problem, /^(bad-patch|patch-conflict)$/, `3,000 levels, then ${last.op}`);
  }
});

t.test('what JSON.parse cannot give is no value', async (t) => {
  const inherits = Object.create({ a: 1 });
  const hole = Array(2);
  for (const value of [
    undefined,
    () => 1,
    Symbol('a'),
    1n,
    new Date(0),
    new Map(),
    inherits,
    hole
  ]) {
    for (const one of [value, [value], { b: { a: value }, a: 1 }]) {
      if (one !== hole) t.throws(() => canonical(one), TypeError);
    }
  }
  t.throws(() => canonical(hole), TypeError);
});

t.test('the answer is compressed as it is written, from a kibibyte on', async (t) => {
  const job = { key: 'a/b', cursor: 'e1-1', kind: 'value', most: MOST, gzip: true };
  const { gzip, value } = change({ ...job, body: bytes({ b: 1, a: 'ä'.repeat(600) }) });
  const whole = `{"feed":"a/b","cursor":"e1-1","value":${Buffer.from(value)}}`;
  t.equal(gunzipSync(gzip).toString(), whole);
  const short = change({ ...job, body: bytes(['x'.repeat(1000)]) });
  t.equal(short.gzip.length, 0, 'less is not worth the time of a thread');
});
