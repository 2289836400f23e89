import t from 'tap';

import { words } from '../fuzz/json.js';
import { Random } from '../fuzz/random.js';
import { differenceOf } from '../fuzz/requests.js';
import { loadTestAddon } from '../support/addon.js';
import { coldHeads, differences, head, hotHeads, ID, realRequests } from '../support/http-cases.js';
import { isSprite, jsonCases } from '../support/json-cases.js';
import { NodeReader } from '../support/node-reader.js';

const { readHead, readRequest } = loadTestAddon();
const bytesOf = (text) => Buffer.from(text, 'latin1');
const readHot = (text) => readHead(bytesOf(text));

t.test('the reader of hot requests', async (t) => {
  for (const [name, [text, wanted]] of Object.entries(hotHeads)) {
    t.test(`takes ${name}`, async (t) => {
      const request = readHot(text);
      t.ok(request, 'it is hot');
      t.match(request, wanted);
      t.equal(request.headLength, text.indexOf('\r\n\r\n') + 4, 'and ends with its empty line');
    });
  }

  for (const [name, text] of Object.entries(coldHeads)) {
    t.test(`leaves ${name} to the other reader`, async (t) => {
      t.equal(readHot(text), false);
    });
  }

  t.test('waits for the rest of every hot head, whatever its pieces', async (t) => {
    const heads = [
      ...Object.values(hotHeads).map(([text]) => bytesOf(text)),
      ...realRequests.map(({ bytes }) => bytes)
    ];
    for (const bytes of heads) {
      const { headLength } = readHead(bytes);
      for (let i = 0; i < headLength; i += 1) {
        if (readHead(bytes.subarray(0, i)) !== null) t.fail(`${bytes.subarray(0, i)}`);
      }
      t.same(readHead(bytes.subarray(0, headLength)), readHead(bytes), 'what follows is not read');
    }
  });

  t.test('leaves a head at the first byte that can be part of no hot one', async (t) => {
    const last = {
      X: 'another method',
      'PO ': 'a method cut short',
      'POST /p': 'another path',
      'POST /join?': 'a query',
      'GET /poll/5f0c1a2g': 'a letter in an id',
      'GET /poll/5f0c1a2bc': 'a digit for a hyphen',
      [`GET /poll/${ID}?x`]: 'an unknown name',
      [`GET /poll/${ID}?ack=-`]: 'a sign',
      [`GET /poll/${ID}?ack=1&a`]: 'a repeated name',
      [`GET /poll/${ID}?hold=30&ack=1&`]: 'a third number',
      [`GET /poll/${ID}?ack=00`]: 'a zero in front',
      [`GET /poll/${ID}?ack=90071992547409910`]: 'a digit too many',
      'POST /join HTTP/1.0': 'another version',
      'POST /join HTTP/1.1\n': 'a bare line feed',
      'POST /join HTTP/1.1\r\n ': 'a space before a name',
      'POST /join HTTP/1.1\r\n:': 'an empty name',
      'POST /join HTTP/1.1\r\nA ': 'a space behind a name',
      'POST /join HTTP/1.1\r\nTransfer-Encoding:': 'Transfer-Encoding',
      'POST /join HTTP/1.1\r\nHost: a\r\nHost:': 'a second Host',
      'POST /join HTTP/1.1\r\nHost: \r': 'an empty Host',
      'POST /join HTTP/1.1\r\nA: \0': 'a NUL',
      'POST /join HTTP/1.1\r\nA: \n': 'a line feed',
      'POST /join HTTP/1.1\r\nA: b\r\r': 'a second carriage return',
      'POST /join HTTP/1.1\r\nContent-Length: 1': 'a body of a join',
      'POST /join HTTP/1.1\r\nContent-Length: 0 ': 'a blank behind a length',
      [`POST /throw/${ID}/up HTTP/1.1\r\nContent-Length: 1000000000`]: 'a digit too many',
      [`POST /throw/${ID}/up HTTP/1.1\r\nContent-Length: 1x`]: 'a letter in a length',
      'POST /join HTTP/1.1\r\nConnection: c': 'another Connection',
      'POST /join HTTP/1.1\r\nConnection: keep ': 'a Connection cut short',
      'POST /join HTTP/1.1\r\nHost: a\r\n\rX': 'no line feed at the end',
      'POST /join HTTP/1.1\r\nA: b\r\n\r': 'the end without a Host'
    };
    for (const [text, why] of Object.entries(last)) {
      t.equal(readHot(text), false, why);
      t.equal(readHot(text.slice(0, -1)), null, `${why}: not a byte earlier`);
    }
  });

  t.test('says of every byte in a name whether it is one of a token', async (t) => {
    const token = /^[!#$%&'*+.^_`|~0-9a-zA-Z-]$/;
    for (let byte = 0; byte < 256; byte += 1) {
      const c = String.fromCharCode(byte);
      const isAccepted = Boolean(readHot(head('POST /join', `A${c}B: x`)));
      t.equal(isAccepted, c === ':' || token.test(c), `${byte}`);
    }
  });

  t.test(
    'says of every byte in a value whether it may stand there, at each place of a word',
    async (t) => {
      for (let at = 0; at < 17; at += 1) {
        for (let byte = 0; byte < 256; byte += 1) {
          const value = 'v'.repeat(at) + String.fromCharCode(byte) + 'v'.repeat(16 - at);
          const good = byte === 9 || (byte >= 32 && byte !== 127);
          if (Boolean(readHot(head('POST /join', `A: ${value}`))) !== good)
            t.fail(`${byte} at ${at}`);
        }
      }
    }
  );

  t.test('knows the dangerous names in every mix of cases', async (t) => {
    const names = [
      'te',
      'expect',
      'upgrade',
      'trailer',
      'keep-alive',
      'http2-settings',
      'proxy-connection',
      'transfer-encoding'
    ];
    for (const name of names) {
      for (let i = 0; i < name.length; i += 1) {
        const mixed = name.slice(0, i).toUpperCase() + name.slice(i);
        if (readHot(head('POST /join', `${mixed}: 0`)) !== false) t.fail(mixed);
        const other = `${name.slice(0, i)}x${name.slice(i + 1)}`;
        if (other !== name && !readHot(head('POST /join', `${other}: 0`))) t.fail(other);
      }
    }
  });
});

t.test('the reader of every request', async (t) => {
  const node = new NodeReader();
  t.teardown(() => node.close());

  for (const [kind, rules] of Object.entries(differences)) {
    for (const [name, { is, text, holds = true }] of Object.entries(rules)) {
      if (!holds) continue;
      t.test(`is ${kind} than Node's where it is meant to be: ${name}`, async (t) => {
        const found = await differenceOf(node, readRequest, bytesOf(text), new Random(1));
        t.equal(found?.kind, kind);
        t.ok(is(found.text, found.before), 'and the rule knows it');
      });
    }
  }

  t.test('says 417, 431 and 413 where they belong', async (t) => {
    const status = (text) => readRequest(bytesOf(text), 9);
    t.equal(status(head('GET /', 'Expect: more')), 417);
    t.equal(status(`GET / HTTP/1.1\r\nX: ${'x'.repeat(16384)}`), 431);
    t.equal(status(`${head('GET /', 'Transfer-Encoding: chunked')}fffffffff\r\n`), 413);
  });

  t.test(
    'bounds a line of a chunked body, and all extensions and trailer fields together',
    async (t) => {
      const bodyOf = (body) => {
        const result = readRequest(bytesOf(head('PUT /', 'Transfer-Encoding: chunked') + body), 99);
        return typeof result === 'object' && result !== null ? result.body : result;
      };
      const chunks = (count) => `1;${'x'.repeat(999)}\r\na\r\n`.repeat(count);
      t.equal(bodyOf(`${chunks(4)}0\r\n\r\n`), 'aaaa');
      t.equal(bodyOf(`${chunks(5)}0\r\n\r\n`), 400);
      t.equal(bodyOf(`${chunks(4)}0\r\nA: ${'x'.repeat(93)}\r\n\r\n`), 'aaaa');
      t.equal(bodyOf(`${chunks(4)}0\r\nA: ${'x'.repeat(94)}\r\n\r\n`), 400);
      t.equal(bodyOf(`1;${'x'.repeat(4095)}`), 400, 'before its end');
      t.equal(bodyOf('1 \r\na\r\n'), 400, 'a blank behind a size');
      t.equal(bodyOf('1 ;a\r\na\r\n0\r\n\r\n'), 'a', 'and before an extension');
    }
  );
});

const { isJsonObject } = loadTestAddon();

t.test('the JSON check', async (t) => {
  for (const { name, bytes, good } of jsonCases) {
    t.test(`${good ? 'takes' : 'refuses'} ${name}`, async (t) => {
      t.equal(isJsonObject(bytes), good);
      t.equal(isSprite(bytes), good, 'and so does JSON.parse with the bounds');
    });
  }

  t.test('says of every byte in every place what JSON.parse says', async (t) => {
    const places = ['{"a":1}', '{"ab\\n":["x",-1.5e+3,true]}', '{"longer than a word":"é🎈"}'];
    for (const text of places) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 1) {
        const original = bytes[at];
        for (let byte = 0; byte < 256; byte += 1) {
          bytes[at] = byte;
          if (isJsonObject(bytes) !== isSprite(bytes)) t.fail(`${byte} at ${at} of ${text}`);
        }
        bytes[at] = original;
      }
    }
  });

  t.test(
    'says of every good text with something more, or a byte less, what JSON.parse says',
    async (t) => {
      const compare = (bytes) => {
        if (isJsonObject(bytes) !== isSprite(bytes)) t.fail(bytes.toString('latin1'));
      };
      for (const { bytes } of jsonCases.filter(({ bytes, good }) => good && bytes.length < 200)) {
        for (let at = 0; at <= bytes.length; at += 1) {
          const before = bytes.subarray(0, at);
          compare(Buffer.concat([before, bytes.subarray(at + 1)]));
          for (const word of words) compare(Buffer.concat([before, word, bytes.subarray(at)]));
        }
      }
    }
  );

  t.test('keeps the bound on depth it is given', async (t) => {
    const nested = (depth) => Buffer.from('{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1));
    for (const bound of [1, 2, 31, 32, 33, 63, 64]) {
      t.equal(isJsonObject(nested(bound), bound), true, `${bound} within ${bound}`);
      t.equal(isJsonObject(nested(bound + 1), bound), false, `${bound + 1} within ${bound}`);
    }
    t.equal(isJsonObject(nested(1), 0), false, 'nothing is 0 deep');
    t.equal(isJsonObject(nested(65), 1000), false, 'a bound above 64 counts as 64');
  });
});
