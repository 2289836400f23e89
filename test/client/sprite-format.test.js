import { readFileSync } from 'node:fs';

import Ajv2020 from 'ajv/dist/2020.js';
import t from 'tap';

import { imageSize, isSmallImage, LARGEST } from '../../lib/client/image-size.js';
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

const JPEG = '/9j/wAARCAAJAAkDAREAAhEAAxEA'; // the head of one of 9 by 9 pixels

/** @returns {{value: unknown}|null} null for what is no JSON */
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

// `schema`: where only the bytes of an image are at fault, which a schema can't see.
for (const { name, json, ok, schema: passes = ok } of vectors) {
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
    } else {
      t.throws(() => readSprite(parsed.value), SpriteError);
    }
  });
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
  const data = JPEG.padEnd(BOUNDS.photo - head.length - 1, 'A'); // a multiple of four
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

const bytes = (...parts) =>
  new Uint8Array(
    Buffer.concat(
      parts.map((part) =>
        typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part)
      )
    )
  );
const be16 = (value) => [value >> 8, value & 255];
const le16 = (value) => [value & 255, value >> 8];
const be32 = (value) => [...be16(value >>> 16), ...be16(value & 0xffff)];
const le24 = (value) => [value & 255, (value >> 8) & 255, value >> 16];

const png = (width, height) =>
  bytes('\x89PNG\r\n\x1a\n', be32(13), 'IHDR', be32(width), be32(height), [8, 6, 0, 0, 0]);
const gif = (screen, ...frames) =>
  bytes(
    'GIF89a',
    le16(screen[0]),
    le16(screen[1]),
    [0x80, 0, 0],
    new Array(6).fill(0),
    [0x21, 0xf9, 4, 0, 0, 0, 0, 0],
    ...frames.map(([x, y, w, h]) => [
      0x2c,
      ...le16(x),
      ...le16(y),
      ...le16(w),
      ...le16(h),
      0,
      2,
      2,
      0x44,
      1,
      0
    ]),
    [0x3b]
  );
const jpeg = (width, height, kind = 0xc0) =>
  bytes(
    [0xff, 0xd8, 0xff, 0xe0],
    be16(16),
    new Array(14).fill(0),
    [0xff, 0xff, 0xc4],
    be16(4),
    [0, 0],
    [0xff, kind],
    be16(17),
    [8],
    be16(height),
    be16(width),
    new Array(10).fill(0)
  );
const webp = (chunk, ...data) => bytes('RIFF', [0, 0, 0, 0], 'WEBP', chunk, [0, 0, 0, 0], ...data);
const vp8l = (width, height) => {
  const bits = (width - 1) | ((height - 1) << 14);
  const size = [bits & 255, (bits >> 8) & 255, (bits >> 16) & 255, bits >>> 24];
  return webp('VP8L', [0x2f, ...size, 7, 16, 17, 17, 136]);
};

for (const [name, image, type, width, height] of [
  ['PNG', png(640, 480), 'image/png', 640, 480],
  ['PNG of gigabytes', png(0x7fffffff, 0x7fffffff), 'image/png', 0x7fffffff, 0x7fffffff],
  ['GIF', gif([30, 20], [0, 0, 30, 20]), 'image/gif', 30, 20],
  [
    'GIF whose second frame is larger than its screen',
    gif([1, 1], [0, 0, 1, 1], [5, 6, 60_000, 50_000]),
    'image/gif',
    60_005,
    50_006
  ],
  ['JPEG', jpeg(300, 200), 'image/jpeg', 300, 200],
  ['progressive JPEG', jpeg(65_000, 200, 0xc2), 'image/jpeg', 65_000, 200],
  ['WebP', webp('VP8 ', [0, 0, 0, 0x9d, 1, 0x2a], le16(176), le16(144)), 'image/webp', 176, 144],
  ['lossless WebP', vp8l(16_384, 9000), 'image/webp', 16_384, 9000],
  [
    'extended WebP',
    webp('VP8X', [0, 0, 0, 0], le24(0xffffff), le24(99)),
    'image/webp',
    0x1000000,
    100
  ]
]) {
  t.test(`${name} says its size`, async (t) => {
    t.same(imageSize(image), { type, width, height });
    t.equal(isSmallImage(image, type), width <= LARGEST && height <= LARGEST);
    t.equal(
      isSmallImage(image, type === 'image/png' ? 'image/gif' : 'image/png'),
      false,
      'its type must be the one it claims'
    );
  });

  t.test(`${name}, cut off anywhere, is no image or the same one`, async (t) => {
    for (let end = 0; end < image.length; end += 1) {
      const size = imageSize(image.subarray(0, end));
      if (size && type !== 'image/gif') t.same([size.width, size.height], [width, height]);
    }
  });
}

t.test('what is no image has no size', async (t) => {
  for (const text of [
    '',
    'GIF89a',
    'hello',
    '<svg/>',
    '\xff\xd8\xff',
    'RIFF....WEBPVP8Z....................',
    'RIFF....WEBPVP8L.....................',
    '\x89PNG\r\n\x1a\n....JUNK........'
  ]) {
    t.equal(imageSize(bytes(text)), null);
  }
  t.equal(
    imageSize(bytes([0xff, 0xd8, 0xff, 0xd9], new Array(20).fill(0))),
    null,
    'a JPEG that ends before it begins'
  );
  t.equal(
    imageSize(bytes([0xff, 0xd8, 0xff, 0xe0], be16(0), new Array(20).fill(0))),
    null,
    'a segment that goes nowhere'
  );
  t.equal(isSmallImage(png(0, 5), 'image/png'), false);
});
