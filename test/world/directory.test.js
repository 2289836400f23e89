import t from 'tap';

import { Pool } from '../../lib/torus/pool.js';
import { readOptions } from '../../lib/operator/options.js';
import { Directory } from '../../lib/world/directory.js';
import { readEntry, VERSION } from '../../lib/world/entry.js';
import { publicUrl, readServerUrl } from '../../lib/world/public-url.js';
import { tagOf, tagOfId, tagText } from '../../lib/base/tag.js';

/** Whose an id is, and where that server is: without any server. */

t.test('a tag is the first 24 bits of the SHA-256 of the name', async (t) => {
  // printf a | sha256sum
  t.equal(tagText(tagOf('a')), 'ca9781');
  t.equal(tagOf('none'), undefined);
  t.equal(tagOf(undefined), undefined);
  t.equal(tagText(5), '000005');
});

/** A pool, to make ids. */
function poolOf(t, more) {
  const pool = new Pool({ ...readOptions([]), capacity: 2000, ...more });
  t.teardown(() => pool.close());
  return pool;
}

t.test('ids of a server in a world begin with its tag, and are as unguessable', async (t) => {
  const pool = poolOf(t, { name: 'a' });
  const ids = Array.from({ length: 1000 }, () => pool.join('10.0.0.1').id);
  for (const id of ids) {
    t.match(id, /^ca9781[0-9a-f]{2}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  t.equal(tagOfId(ids[0]), tagOf('a'));
  t.equal(tagOfId(ids[0].toUpperCase()), tagOf('a'));
  // Of the characters behind the tag, those that are random take every value.
  const random = [6, 7, 9, 10, 11, 12, 15, 16, 17, 20, 21, 22, 24, 25, 26, 27];
  for (const at of random) t.equal(new Set(ids.map((id) => id[at])).size, 16, `character ${at}`);
  t.equal(new Set(ids.map((id) => id.slice(0, 28))).size, ids.length, 'none twice');
});

t.test('ids of a server without a world have no tag', async (t) => {
  const pool = poolOf(t, { name: 'none' });
  const ids = Array.from({ length: 200 }, () => pool.join('10.0.0.1').id);
  t.ok(new Set(ids.map((id) => id.slice(0, 6))).size > 190);
  t.equal(tagOfId('nonsense'), undefined);
  t.equal(tagOfId(`${ids[0].slice(0, 14)}4${ids[0].slice(15)}`), undefined, 'of another version');
});

t.test('where the clients of the others are', async (t) => {
  const directory = new Directory('a');
  const changes = [];
  directory.onChange(() => changes.push(directory.entries));
  const ofB = `${tagText(tagOf('b'))}00-0000-8000-8000-000000000000`;
  t.equal(directory.urlOf(ofB), undefined, 'nobody is known');
  const members = [
    ...[{ name: 'c', url: 'http://c:1' }, { name: 'b', url: 'http://b:1' }, { name: 'd' }],
    { name: 'a', url: 'http://a:1' }
  ];
  const update = (places, restarting = []) => directory.update({ places, restarting });
  update(members);
  update(members.toReversed());
  t.equal(directory.urlOf(ofB), 'http://b:1');
  t.equal(directory.urlOf(ofB.toUpperCase()), 'http://b:1');
  t.equal(directory.urlOf(`${tagText(tagOf('a'))}${ofB.slice(6)}`), undefined, 'its own');
  t.equal(directory.urlOf(`${tagText(tagOf('d'))}${ofB.slice(6)}`), undefined, 'without a URL');
  for (const id of ['', 'x', 'nonsense', ofB.slice(0, 13)]) t.equal(directory.urlOf(id), undefined);
  t.strictSame(
    changes,
    [
      [
        [tagOf('c'), 'http://c:1'],
        [tagOf('b'), 'http://b:1']
      ].toSorted(([a], [b]) => a - b)
    ],
    'told once, ascending'
  );
  const copy = new Directory('c');
  copy.take(directory.entries);
  t.equal(copy.urlOf(ofB), 'http://b:1');
  update([members[0]], ['a', 'b', 'c']);
  t.equal(directory.urlOf(ofB), null, 'it restarts');
  t.equal(directory.urlOf(`${tagText(tagOf('c'))}${ofB.slice(6)}`), 'http://c:1', 'it is back');
  t.equal(directory.urlOf(`${tagText(tagOf('a'))}${ofB.slice(6)}`), undefined, 'its own still');
  copy.take(JSON.parse(JSON.stringify(directory.entries)));
  t.equal(copy.urlOf(ofB), null);
  update([]);
  t.equal(directory.urlOf(ofB), undefined, 'gone');
});

t.test('a URL of a server', async (t) => {
  const good = [
    ...['http://a', 'http://a:8080', 'https://a.example', 'http://127.0.0.1:1', 'http://[::1]:80'],
    'https://a.example:8443/'
  ];
  for (const text of good) {
    const read = readServerUrl(text);
    t.ok(read && new URL(read).href === new URL(text).href && !read.endsWith('/'), text);
  }
  const bad = [
    ...[undefined, null, 7, '', 'none', 'a', 'a:8080', '//a', 'ftp://a', 'javascript:alert(1)'],
    ...['http://', 'http://a/path', 'http://a?x', 'http://a/#x', 'http://user@a', 'http://u:p@a'],
    ...['http://a:99999', 'http://a\r\nSet-Cookie: x', 'http://ä', ` http://a`, 'http://a\t'],
    `http://${'a'.repeat(260)}`
  ];
  for (const text of bad) t.equal(readServerUrl(text), undefined, JSON.stringify(text));
});

t.test('what others are told of where a server is', async (t) => {
  const url = (host, worldUrl = 'none') => publicUrl({ host, worldUrl }, 8080);
  t.equal(url('127.0.0.1'), 'http://127.0.0.1:8080');
  t.equal(url('::1'), 'http://[::1]:8080');
  t.equal(url('a.example'), 'http://a.example:8080');
  t.equal(url('0.0.0.0', 'https://a.example'), 'https://a.example');
  for (const every of ['0.0.0.0', '::']) {
    t.equal(readServerUrl(url(every)), url(every), 'one address');
    t.notMatch(url(every), /0\.0\.0\.0|::/);
  }
});

t.test('an entry in the store with a bad URL, or a bad grace, has none', async (t) => {
  const entry = { version: VERSION, epoch: 5, state: 'member', lease: 1000, rows: 0 };
  const read = (url) => readEntry(JSON.stringify({ ...entry, url })).url;
  t.equal(read('http://a:1'), 'http://a:1');
  for (const url of [undefined, 'http://a/evil?', 'javascript:x', 7, {}]) {
    t.equal(read(url), undefined);
  }
  const graceOf = (grace) => readEntry(JSON.stringify({ ...entry, grace })).grace;
  t.equal(graceOf(62_000), 62_000);
  for (const grace of [undefined, null, 0, -1, 1.5, '62000', 1e300, 7_200_001]) {
    t.equal(graceOf(grace), undefined, JSON.stringify(grace));
  }
});
