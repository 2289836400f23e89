import { readFileSync } from 'node:fs';

import Ajv2020 from 'ajv/dist/2020.js';
import t from 'tap';

import { imageSize } from '../../lib/client/image-size.js';
import {
  BOUNDS,
  decodeDataUrl,
  PICTURES,
  readSprite,
  SpriteError,
  writeSprite
} from '../../lib/client/sprite.js';

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
const vectors = read('../vectors/sprites.json');
const schema = read('../../lib/client/sprite.schema.json');
const validate = new Ajv2020({ allErrors: true, strictTuples: false }).compile(schema);

const JPEG = '/9j/wAARCAAJAAkDAREAAhEAAxEA'; // the head of an image of 9 by 9 pixels

/** @returns {{value: unknown}|null} null for invalid JSON */
function parse(json) {
  try {
    return { value: JSON.parse(json) };
  } catch {
    return null;
  }
}

t.test('the vectors have names of their own, and there are good and bad ones', async (t) => {
  t.equal(new Set(vectors.map(({ name }) => name)).size, vectors.length);
  t.ok(vectors.filter(({ ok }) => ok).length > 20);
  t.ok(vectors.filter(({ ok }) => !ok).length > 50);
});

// `schema`: the schema's verdict, if only the bytes of an image are at fault, which it can't see. `size`: in pixels.
for (const { name, json, ok, schema: passes = ok, size } of vectors) {
  t.test(`${ok ? 'read' : 'refused'}: ${name}`, async (t) => {
    const parsed = parse(json);
    if (!parsed) {
      t.notOk(ok, 'what is no JSON is no sprite');
      return;
    }
    t.equal(validate(parsed.value), passes, 'by the schema');
    if (ok) {
      const sprite = readSprite(parsed.value);
      t.same(
        Object.keys(sprite).filter((key) => !(key in schema.properties)),
        []
      );
      t.ok(validate(sprite));
      t.ok(validate(JSON.parse(writeSprite(sprite))), 'and what is written of it again');
      if (size !== undefined) checkSize(t, sprite, size);
    } else {
      t.throws(() => readSprite(parsed.value), SpriteError);
    }
  });
}

/** Checks an image's size. The image, cut off anywhere, must be invalid or have the same size. */
function checkSize(t, { picture, photo }, [width, height]) {
  const { type, bytes } = decodeDataUrl(photo ?? picture);
  t.same(imageSize(bytes), { type, width, height });
  for (let end = 0; end < bytes.length && type !== 'image/gif'; end += 1) {
    const cut = imageSize(bytes.subarray(0, end));
    if (cut) t.same([cut.width, cut.height], [width, height], `its first ${end} bytes`);
  }
}

t.test('what JSON cannot say is refused too', async (t) => {
  const good = { id: 'a', picture: 'ball', at: 0.5, speed: [0, 0] };
  for (const bad of [
    undefined,
    () => {},
    Symbol('sprite'),
    1n,
    { ...good, at: NaN },
    { ...good, at: Infinity },
    { ...good, speed: [NaN, 0] },
    { ...good, speed: [0, -Infinity] },
    { ...good, speed: new Array(2) },
    { ...good, at: new Number(0.5) },
    { ...good, id: new String('a') },
    { ...good, by: 7 },
    { ...good, by: 'x'.repeat(41) }
  ]) {
    t.throws(() => readSprite(bad), SpriteError);
  }
});

t.test('what is read is a sprite of its own: the given one can change afterwards', async (t) => {
  const given = { id: 'a', picture: 'ball', at: 0.5, speed: [1, 2], more: {} };
  const sprite = readSprite(given);
  given.speed[0] = 1e6;
  t.same(sprite, { id: 'a', picture: 'ball', at: 0.5, speed: [1, 2] });
});

t.test('an error says which member, and what it should be', async (t) => {
  t.throws(() => readSprite({ id: 'a', picture: 'ball', at: 2, speed: [0, 0] }), {
    member: 'at',
    message: 'at must be a number from 0 to 1'
  });
  t.throws(() => readSprite(7), { message: 'a sprite must be an object' });
});

t.test('writing brings numbers into their bounds and refuses the rest', async (t) => {
  const sprite = { id: 'a', picture: 'star', at: -3, speed: [1e9, -1e9] };
  t.same(JSON.parse(writeSprite(sprite)), { id: 'a', picture: 'star', at: 0, speed: [20, -20] });
  t.same(JSON.parse(writeSprite({ ...sprite, at: 7, speed: [-1, 1 / 3], name: 'x' })), {
    id: 'a',
    picture: 'star',
    at: 1,
    speed: [0, 0.333333],
    name: 'x'
  });
  const thirds = JSON.parse(writeSprite({ ...sprite, at: 1 / 3, speed: [2 / 3, 0] }));
  t.match(thirds, { at: 0.333333, speed: [0.666667, 0] });
  t.throws(() => writeSprite({ ...sprite, id: '' }), SpriteError);
  t.throws(() => writeSprite({ ...sprite, at: NaN }), SpriteError);
});

t.test('the schema and the reader have the same pictures and bounds', async (t) => {
  const { id, picture, name, speed, photo } = schema.properties;
  t.same(picture.anyOf[0].enum, PICTURES);
  t.equal(picture.anyOf[1].maxLength, BOUNDS.dataUrl);
  t.equal(photo.maxLength, BOUNDS.photo);
  t.equal(photo.pattern, picture.anyOf[1].pattern);
  t.equal(name.maxLength, BOUNDS.name);
  t.equal(speed.prefixItems[0].maximum, BOUNDS.speed);
  t.match(id.pattern, `{1,${BOUNDS.id}}`);
});

t.test('a largest sprite of all fits the default throw of 16384 bytes', async (t) => {
  const sprite = {
    id: 'i'.repeat(64),
    picture: `data:image/jpeg;base64,${JPEG.padEnd(11_976, 'A')}`,
    at: 0.123456,
    speed: [12.345678, -12.345678],
    name: '\u0001'.repeat(40),
    by: '\u0001'.repeat(40)
  };
  t.ok(Buffer.byteLength(writeSprite(sprite)) < 16_384);
});

t.test('a photo stays out where the server does not take that much', async (t) => {
  const photo = `data:image/jpeg;base64,${JPEG.padEnd(20_000, 'A')}`;
  const sprite = { id: 'a', picture: 'ball', at: 0.5, speed: [0, 0], name: 'Größe', photo };
  const whole = writeSprite(sprite);
  t.same(JSON.parse(whole), sprite);
  const bytes = Buffer.byteLength(whole);
  t.equal(writeSprite(sprite, bytes), whole);
  const { photo: out, ...rest } = sprite;
  t.same(JSON.parse(writeSprite(sprite, bytes - 1)), rest);
  t.equal(out, photo, 'and the sprite keeps it');
});

t.test('what is as large as a photo may be is read, and more is not', async (t) => {
  const sprite = { id: 'a', picture: 'ball', at: 0.5, speed: [0, 0] };
  const head = 'data:image/jpeg;base64,';
  const data = JPEG.padEnd(BOUNDS.photo - head.length - 1, 'A'); // its length is a multiple of four
  t.equal(readSprite({ ...sprite, photo: head + data }).photo.length, head.length + data.length);
  for (const photo of [`${head}${data}AAAA`, `${head}${data.slice(1)}!`]) {
    t.throws(() => readSprite({ ...sprite, photo }), { member: 'photo' });
  }
});

t.test('the bytes of a data URL', async (t) => {
  const { type, bytes } = decodeDataUrl('data:image/png;base64,AAEC/w==');
  t.equal(type, 'image/png');
  t.same([...bytes], [0, 1, 2, 255]);
});

t.test('a hostile picture is read in no time: nothing is looked at twice', async (t) => {
  const begin = process.cpuUsage();
  for (let i = 0; i < 200; i += 1) {
    const picture = `data:image/png;base64,${'A'.repeat(11_970 + (i % 4))}!`;
    t.throws(() => readSprite({ id: 'a', picture, at: 0, speed: [0, 0] }), SpriteError);
  }
  const { user } = process.cpuUsage(begin);
  t.comment(`200 of them in ${Math.round(user / 1000)} ms of CPU`);
});
