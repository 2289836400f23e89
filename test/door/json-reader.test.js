import t from 'tap';

import { loadTestAddon } from '../support/addon.js';
import { jsonCases } from '../support/json-cases.js';
import { isSprite } from '../support/json-oracle.js';

const { isJsonObject } = loadTestAddon();

t.test('the JSON check', async (t) => {
  for (const { name, bytes, good } of jsonCases) {
    t.test(`${good ? 'takes' : 'refuses'} ${name}`, async (t) => {
      t.equal(isJsonObject(bytes), good);
      t.equal(isSprite(bytes), good, 'and so does JSON.parse with the bounds');
    });
  }

  t.test('refuses every text cut short', async (t) => {
    for (const { name, bytes } of jsonCases.filter(({ good }) => good)) {
      // A good text without its last brace, and whatever white space follows it, is never good.
      const end = bytes.lastIndexOf('}'.charCodeAt(0));
      for (let i = 0; i <= end; i += 1) {
        if (isJsonObject(bytes.subarray(0, i))) t.fail(`${name}, cut to ${i} bytes`);
      }
    }
  });

  t.test('says of every byte in every place what JSON.parse says', async (t) => {
    const places = ['{"a":1}', '{"ab\\n":["x",-1.5e+3,true]}', '{"longer than a word":"é🎈"}'];
    for (const text of places) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 1) {
        const was = bytes[at];
        for (let byte = 0; byte < 256; byte += 1) {
          bytes[at] = byte;
          if (isJsonObject(bytes) !== isSprite(bytes)) t.fail(`${byte} at ${at} of ${text}`);
        }
        bytes[at] = was;
      }
    }
  });

  t.test('keeps the bound on depth it is given', async (t) => {
    const nested = (depth) => Buffer.from('{"a":'.repeat(depth - 1) + '{}' + '}'.repeat(depth - 1));
    for (const bound of [1, 2, 31, 32, 33, 63, 64]) {
      t.equal(isJsonObject(nested(bound), bound), true, `${bound} within ${bound}`);
      t.equal(isJsonObject(nested(bound + 1), bound), false, `${bound + 1} within ${bound}`);
    }
    t.equal(isJsonObject(nested(1), 0), false, 'nothing is 0 deep');
    t.equal(isJsonObject(nested(65), 1000), false, 'a bound above 64 counts as 64');
  });

  t.test('reads no byte before or behind those it is given', async (t) => {
    const around = Buffer.from('{{"a":1}}');
    t.equal(isJsonObject(around.subarray(1, -1)), true);
    t.equal(isJsonObject(Buffer.from('{"a":"b"}').subarray(0, 8)), false);
  });

  t.test('wants bytes, not text', async (t) => {
    t.throws(() => isJsonObject('{}'), TypeError);
    t.throws(() => isJsonObject(), TypeError);
  });
});
