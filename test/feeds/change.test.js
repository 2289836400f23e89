import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';

import jsonpatch from 'fast-json-patch';
import t from 'tap';

import { canonical, DEPTH } from '../../lib/feeds/canonical.js';
import { change } from '../../lib/feeds/change.js';
import { compare } from '../../lib/feeds/compare.js';
import { Random } from '../fuzz/random.js';

/**
 * What a publication makes of a feed, as the worker threads work it out.
 */

const require = createRequire(import.meta.url);
const bytes = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const MOST = 100000;

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

t.test('canonical JSON: the rules of RFC 8785', async (t) => {
  const written = {
    '{"b":1,"a":2}': '{"a":2,"b":1}',
    '{"10":1,"9":2}': '{"10":1,"9":2}',
    '{"\\u20ac":1,"\\r":2,"1":3}': '{"\\r":2,"1":3,"€":1}',
    '[1.0,1e2,-0,1e21,0.000001]': '[1,100,0,1e+21,0.000001]',
    '"\\u00e4\\/\\u0001"': '"ä/\\u0001"',
    '"\\ud800"': '"\\ud800"',
    ' [ ] ': '[]'
  };
  for (const [given, expected] of Object.entries(written)) {
    t.equal(textOf(apply(undefined, 'value', given)), expected, given);
  }
});

t.test('canonical JSON: members in order at every level, whatever they are called', async (t) => {
  const random = new Random(Number(process.env.SEED ?? Math.floor(Math.random() * 1e9)));
  const names = [
    'b',
    'a',
    '10',
    '9',
    '',
    'constructor',
    'toString',
    'toJSON',
    '\u20ac',
    '__proto__'
  ];
  const make = (depth) => {
    if (depth > 3 || random.oneIn(4)) return random.pick([1.5, 'x', null, true, -0, '"']);
    if (random.oneIn(3)) return Array.from({ length: random.below(5) }, () => make(depth + 1));
    const members = Array.from({ length: random.below(5) }, () => [
      // Now and then one that has __proto__, which is looked for in no other.
      names[random.below(names.length - (random.oneIn(20) ? 0 : 1))],
      make(depth + 1)
    ]);
    return Object.fromEntries(members);
  };
  const plainly = (value) => {
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    if (Array.isArray(value)) return `[${value.map(plainly).join()}]`;
    const members = Object.keys(value).sort();
    return `{${members.map((name) => `${JSON.stringify(name)}:${plainly(value[name])}`).join()}}`;
  };
  let wrong = 0;
  for (let i = 0; i < 20000; i += 1) {
    const value = JSON.parse(plainly(make(0)));
    // Most objects of it have the same names; or hardly any two have one.
    const many = random.oneIn(2) ? Array(20).fill(value) : { z: value, ...make(0), b: [value] };
    if (canonical(many) !== plainly(many)) wrong += 1;
  }
  t.equal(wrong, 0);
  const each = Array.from({ length: 3000 }, (_, i) => ({ [`name${i}`]: i, a: i }));
  t.equal(canonical(each), plainly(each), 'and where no two have the same');
});

t.test('a patch is made where one is asked for', async (t) => {
  const job = { key: 'k', cursor: 'e1-2', kind: 'value', most: MOST, gzip: false };
  const [before, body] = [bytes({ a: 1, b: 2 }), bytes({ b: 2, a: 3 })];
  const patched = change({ ...job, body, before, patched: true });
  t.equal(Buffer.from(patched.patch).toString(), '{"op":"replace","path":"/a","value":3}');
  const whole = change({ ...job, body, patched: false });
  t.equal(textOf(whole), textOf(patched));
  t.equal(whole.patch.length, 0);
});

t.test('what compare finds leads from one value to the other, 20,000 random pairs', async (t) => {
  const random = new Random(Number(process.env.SEED ?? Math.floor(Math.random() * 1e9)));
  const names = ['x', 'y', 'a/b', '~1', '10', 'constructor', ''];
  const make = (depth) => {
    switch (random.below(depth > 3 ? 3 : 5)) {
      case 0:
        return random.below(5);
      case 1:
        return random.pick(['a', '~', '/']);
      case 2:
        return null;
      case 3:
        return Array.from({ length: random.below(6) }, () => make(depth + 1));
      default:
        return Object.fromEntries(
          Array.from({ length: random.below(5) }, () => [random.pick(names), make(depth + 1)])
        );
    }
  };
  const differ = (value) => {
    if (typeof value !== 'object' || value === null || random.oneIn(4)) return make(1);
    if (Array.isArray(value)) {
      const copy = value.map((one) => (random.oneIn(3) ? differ(one) : one));
      if (random.oneIn(2)) copy.splice(random.below(copy.length + 1), random.below(2), make(2));
      return copy;
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, random.oneIn(3) ? differ(one) : one])
    );
  };
  let wrong = 0;
  for (let i = 0; i < 20000; i += 1) {
    const before = make(0);
    const after = random.oneIn(3) ? make(0) : differ(before);
    const patch = compare(before, after);
    const text = canonical(jsonpatch.applyPatch(structuredClone(before), patch, true).newDocument);
    const same = canonical(before) === canonical(after);
    if (text !== canonical(after) || (patch.length === 0) !== same) {
      t.comment(JSON.stringify({ before, after, patch }));
      wrong += 1;
    }
  }
  t.equal(wrong, 0);
});

t.test('arrays are aligned: what is put in front is one operation', async (t) => {
  const events = Array.from({ length: 100 }, (_, i) => ({ minute: i, text: `event ${i}` }));
  const fresh = { minute: 100, text: 'goal' };
  t.strictSame(compare({ events }, { events: [fresh, ...events] }), [
    { op: 'add', path: '/events/0', value: fresh }
  ]);
  t.equal(compare(events, [fresh, ...events.slice(0, 99)]).length, 2, 'and one falls off the end');
});

t.test('values that are made to take long, or to reach a prototype', async (t) => {
  const long = Array.from({ length: 20000 }, (_, i) => i);
  t.ok(compare(long, long.toReversed()) === null, 'no patch of more than 10,000 operations');
  const hidden = JSON.parse('{"__proto__":1}');
  t.equal(compare(hidden, JSON.parse('{"__proto__":2}')), null, 'no patch through a prototype');
  t.equal(compare({}, hidden), null);
  const outcome = apply({}, 'json-patch', '[{"op":"add","path":"/__proto__/x","value":1}]');
  t.equal(outcome.problem, 'bad-patch');
  t.equal({}.x, undefined);
  const wide = [{ op: 'add', path: '', value: ['x'.repeat(1000)] }];
  for (let i = 0; i < 40; i += 1) wide.push({ op: 'copy', from: '', path: '/-' });
  t.match(
    apply([], 'json-patch', wide).problem,
    /^(bad-patch|feed-too-large)$/,
    'doubled 40 times'
  );
  const operations = Array.from({ length: 10001 }, () => ({ op: 'test', path: '', value: 1 }));
  t.equal(apply(1, 'json-patch', operations).problem, 'bad-patch', '10,001 operations');
  const deep = JSON.parse('['.repeat(DEPTH) + ']'.repeat(DEPTH));
  t.equal(apply(1, 'value', deep).problem, undefined);
  t.equal(apply(1, 'value', `[${JSON.stringify(deep)}]`).problem, 'bad-value');
});

t.test('the answer is compressed as it is written, from a kibibyte on', async (t) => {
  const job = { key: 'a/b', cursor: 'e1-1', kind: 'value', most: MOST, gzip: true };
  const { gzip, value } = change({ ...job, body: bytes({ b: 1, a: 'ä'.repeat(600) }) });
  const whole = `{"feed":"a/b","cursor":"e1-1","value":${Buffer.from(value)}}`;
  t.equal(gunzipSync(gzip).toString(), whole);
  const short = change({ ...job, body: bytes(['x'.repeat(1000)]) });
  t.equal(short.gzip.length, 0, 'less is not worth the time of a thread');
});

t.test('thousands of moves in a long array cost no copy of it each', async (t) => {
  const long = Array.from({ length: 150000 }, (_, i) => i % 7);
  const patch = Array.from({ length: 3000 }, () => ({ op: 'move', from: '/0', path: '/70000' }));
  const began = performance.now();
  const outcome = apply(long, 'json-patch', patch);
  t.equal(outcome.problem, 'feed-too-large', 'it is more than this test allows');
  t.ok(performance.now() - began < 15000, 'a copy each takes half a minute and more');
});

t.test('what moves from nowhere conflicts', async (t) => {
  for (const from of ['/b', '/a/0/x', '/a/x', '/c/d/e']) {
    for (const op of ['move', 'copy']) {
      const outcome = apply({ a: [1] }, 'json-patch', [{ op, from, path: '/z' }]);
      t.equal(outcome.problem, 'patch-conflict', `${op} ${from}`);
    }
  }
  const none = apply({ a: 1 }, 'json-patch', [{ op: 'move', path: '/z' }]);
  t.equal(none.problem, 'bad-patch');
});
