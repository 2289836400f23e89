import t from 'tap';
import { LARGEST, imageSize, isSmallImage } from '../../lib/client/image-size.js';

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
