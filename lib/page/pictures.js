/**
 * Pictures of sprites: stickers, cut out with a white rim. Six are drawn here; other sprites bring a
 * small image. Each is painted once into a canvas of its own, which the stage then only copies.
 */

const INK = '#2a2342';
const TAU = Math.PI * 2;

const GHOST =
  'M18 86 V46 C18 10 82 10 82 46 V86 Q75 76 68 84 Q61 92 54 82 ' +
  'Q50 77 46 82 Q39 92 32 84 Q25 76 18 86Z';
const HULL = 'M50 6 C66 18 70 38 68 58 L62 80 H38 L32 58 C30 38 34 18 50 6Z';
const ROCKET =
  'M50 6 C66 18 70 38 68 58 L82 72 L80 84 L64 78 L60 82 L58 90 L50 97 ' +
  'L42 90 L40 82 L36 78 L20 84 L18 72 L32 58 C30 38 34 18 50 6Z';

/**
 * Drawings in a square of 100 by 100. `cut` is the outline that the rim follows; with a `color` it is filled, and
 * `inside` paints on it, no further than its outline; `paint` paints last, anywhere.
 */
const DRAWINGS = {
  ball: {
    cut: circlePath(50, 50, 38),
    color: '#ff6b4a',
    inside(ctx) {
      fill(ctx, new Path2D('M8 50 Q50 28 92 50 L92 64 Q50 42 8 64Z'), '#fff3dc');
      fill(ctx, new Path2D('M8 64 Q50 42 92 64 L92 78 Q50 56 8 78Z'), '#16a79e');
      fill(ctx, circlePath(50, 12, 13), '#ffc53d');
      shade(ctx, circlePath(62, 62, 46));
    },
    paint: (ctx) => glint(ctx, 35, 34, 8, -0.6)
  },
  star: {
    cut: starPath(50, 52, 42, 20),
    color: '#ffc53d',
    inside: (ctx) => fill(ctx, new Path2D('M50 52 L50 5 L95 40 L80 100 L50 80Z'), '#ffb01f'),
    paint(ctx, closed) {
      eyes(ctx, [42, 58], 50, 3.6, closed);
      smile(ctx, 50, 57, 6);
      cheeks(ctx, 35, 65, 57);
    }
  },
  ghost: {
    cut: new Path2D(GHOST),
    color: '#cfc4ff',
    inside(ctx) {
      fill(ctx, new Path2D('M60 10 C82 14 82 40 82 46 V90 H66 C72 60 72 34 60 10Z'), '#b3a3fb');
    },
    paint(ctx, closed) {
      eyes(ctx, [40, 60], 46, 5.4, closed);
      fill(ctx, new Path2D('M44 60 Q50 56 56 60 Q57 70 50 70 Q43 70 44 60Z'), INK);
      cheeks(ctx, 30, 70, 57);
    }
  },
  rocket: {
    cut: new Path2D(ROCKET),
    paint(ctx) {
      fill(ctx, new Path2D('M40 80 H60 L58 90 L50 97 L42 90Z'), '#ffc53d');
      fill(ctx, new Path2D('M32 56 L18 72 L20 84 L38 77Z M68 56 L82 72 L80 84 L62 77Z'), '#ff6b4a');
      fill(ctx, new Path2D(HULL), '#f4f0ff');
      fill(ctx, new Path2D('M50 6 C66 18 70 38 68 58 L62 80 H52 C58 52 58 26 50 6Z'), '#d9d0f5');
      fill(ctx, new Path2D('M50 6 C57 11 62 18 65 27 H35 C38 18 43 11 50 6Z'), '#ff6b4a');
      fill(ctx, circlePath(50, 44, 11), INK);
      fill(ctx, circlePath(50, 44, 8), '#45c8f1');
      glint(ctx, 47, 41, 3, -0.6);
    }
  },
  fish: {
    cut: new Path2D('M6 50 C18 20 56 18 70 42 L92 26 Q86 50 92 76 L70 58 C56 84 18 82 6 50Z'),
    color: '#16a79e',
    inside(ctx) {
      fill(ctx, new Path2D('M36 18 Q46 50 36 84 L50 84 Q60 50 50 18Z'), '#7fe3d2');
      fill(ctx, new Path2D('M66 20 L96 20 L96 82 L66 82 Q76 50 66 20Z'), '#0b7f80');
      shade(ctx, circlePath(46, 80, 40));
    },
    paint(ctx, closed) {
      if (closed) {
        stroke(ctx, new Path2D('M18 44 Q24 48 30 44'), INK, 3);
      } else {
        fill(ctx, circlePath(24, 44, 7), '#fff');
        fill(ctx, circlePath(22.5, 44, 3.8), INK);
      }
      stroke(ctx, new Path2D('M12 58 Q18 62 23 58'), INK, 3);
    }
  },
  flower: {
    cut: petals(50, 50, 24, 17, 6),
    color: '#f779b5',
    inside: (ctx) => fill(ctx, petals(50, 50, 15, 9, 6), '#fba8d0'),
    paint(ctx, closed) {
      fill(ctx, circlePath(50, 50, 17), '#ffc53d');
      eyes(ctx, [44, 56], 48, 2.8, closed);
      smile(ctx, 50, 53, 5);
    }
  },
  /** Stands for a covered picture. */
  covered: {
    cut: new Path2D('M16 22 Q16 16 22 16 H78 Q84 16 84 22 V78 Q84 84 78 84 H22 Q16 84 16 78Z'),
    color: '#b3a3fb',
    inside(ctx) {
      for (let x = -80; x < 100; x += 24) {
        stroke(ctx, new Path2D(`M${x} 90 L${x + 80} 10`), '#cfc4ff', 9);
      }
    },
    paint(ctx) {
      stroke(ctx, new Path2D('M26 50 Q50 24 74 50 Q50 76 26 50Z M30 74 L70 26'), INK, 5);
    }
  },
  /** Stands for an image that can't be decoded. */
  torn: {
    cut: new Path2D('M14 14 H86 V60 L74 54 L64 66 L52 56 L40 70 L28 60 L14 72Z'),
    color: '#d8d2c4',
    paint(ctx) {
      fill(ctx, circlePath(34, 32, 7), '#b5ad9c');
      stroke(ctx, new Path2D('M14 62 L40 40 L56 54 L68 44 L86 58'), '#b5ad9c', 4);
    }
  }
};

/**
 * Paints a sticker.
 *
 * @param {string} name of a drawing
 * @param {number} pixels side of the square
 * @param {boolean} [closed] whether its eyes, if any, are closed
 * @returns {HTMLCanvasElement}
 */
export function drawSticker(name, pixels, closed = false) {
  const { canvas, ctx } = square(pixels);
  const { cut, color, inside, paint } = DRAWINGS[name];
  ctx.scale(pixels / 100, pixels / 100);
  // The rim needs room: the drawing itself is a little smaller than its square.
  ctx.translate(50, 50);
  ctx.scale(0.86, 0.86);
  ctx.translate(-50, -50);
  rim(ctx, cut);
  if (color) fill(ctx, cut, color);
  if (inside) {
    ctx.save();
    ctx.clip(cut);
    inside(ctx);
    ctx.restore();
  }
  paint(ctx, closed);
  return canvas;
}

/**
 * Paints an image as a sticker: fitted into the square, with round corners and a rim.
 *
 * @param {ImageBitmap} bitmap
 * @param {number} pixels side of the square
 * @returns {HTMLCanvasElement}
 */
export function imageSticker(bitmap, pixels) {
  const { canvas, ctx } = square(pixels);
  const edge = pixels * 0.07;
  const scale = (pixels - 2 * edge) / Math.max(bitmap.width, bitmap.height);
  const width = Math.max(1, bitmap.width * scale);
  const height = Math.max(1, bitmap.height * scale);
  const x = (pixels - width) / 2;
  const y = (pixels - height) / 2;
  const outline = new Path2D();
  outline.roundRect(x, y, width, height, Math.min(width, height, pixels) * 0.1);
  ctx.lineJoin = 'round';
  ctx.lineWidth = pixels * 0.08;
  ctx.strokeStyle = '#fff';
  ctx.stroke(outline);
  ctx.fillStyle = '#fff';
  ctx.fill(outline);
  ctx.clip(outline);
  ctx.imageSmoothingQuality = 'high';
  ctx.drawImage(bitmap, x, y, width, height);
  return canvas;
}

/**
 * Paints a soft round shadow.
 *
 * @param {number} pixels
 * @returns {HTMLCanvasElement}
 */
export function drawShadow(pixels) {
  const { canvas, ctx } = square(pixels);
  const middle = pixels / 2;
  const gradient = ctx.createRadialGradient(middle, middle, 0, middle, middle, middle);
  gradient.addColorStop(0, 'rgba(20, 12, 50, 0.42)');
  gradient.addColorStop(0.55, 'rgba(20, 12, 50, 0.22)');
  gradient.addColorStop(1, 'rgba(20, 12, 50, 0)');
  ctx.fillStyle = gradient;
  ctx.fillRect(0, 0, pixels, pixels);
  return canvas;
}

const LABELS = { light: ['#fff', INK], dark: [INK, '#fff'] };

/**
 * Paints a name as a small label. The name is always text, never markup.
 *
 * @param {string} name
 * @param {number} ratio device pixels a CSS pixel
 * @param {'light'|'dark'} [ground]
 * @returns {HTMLCanvasElement} at most 160 CSS pixels wide
 */
export function drawLabel(name, ratio, ground = 'light') {
  const [paper, ink] = LABELS[ground];
  const font = `600 ${12 * ratio}px ui-rounded, "Nunito", system-ui, sans-serif`;
  const { canvas, ctx } = square(1);
  ctx.font = font;
  const maxWidth = 144 * ratio;
  const width = Math.min(maxWidth, ctx.measureText(name).width);
  canvas.width = Math.ceil(width + 16 * ratio);
  canvas.height = Math.ceil(20 * ratio);
  const pill = new Path2D();
  pill.roundRect(0, 0, canvas.width, canvas.height, canvas.height / 2);
  fill(ctx, pill, paper);
  ctx.font = font;
  ctx.fillStyle = ink;
  ctx.textAlign = 'center';
  ctx.textBaseline = 'middle';
  ctx.fillText(name, canvas.width / 2, canvas.height * 0.54, maxWidth);
  return canvas;
}

function square(pixels) {
  const canvas = document.createElement('canvas');
  canvas.width = pixels;
  canvas.height = pixels;
  return { canvas, ctx: canvas.getContext('2d') };
}

function rim(ctx, outline) {
  ctx.lineJoin = 'round';
  ctx.lineWidth = 13;
  ctx.strokeStyle = '#fff';
  ctx.stroke(outline);
  fill(ctx, outline, '#fff');
}

function fill(ctx, path, color) {
  ctx.fillStyle = color;
  ctx.fill(path);
}

function stroke(ctx, path, color, width) {
  ctx.strokeStyle = color;
  ctx.lineWidth = width;
  ctx.lineCap = 'round';
  ctx.lineJoin = 'round';
  ctx.stroke(path);
}

/** Makes everything outside a circle a little darker. The caller sets the clip. */
function shade(ctx, lit) {
  const path = new Path2D('M-20 -20 H120 V120 H-20Z');
  path.addPath(lit);
  ctx.fillStyle = 'rgba(42, 35, 66, 0.13)';
  ctx.fill(path, 'evenodd');
}

function glint(ctx, x, y, size, turn) {
  const path = new Path2D();
  path.ellipse(x, y, size, size * 0.55, turn, 0, TAU);
  fill(ctx, path, 'rgba(255, 255, 255, 0.75)');
}

function eyes(ctx, places, y, size, closed) {
  for (const x of places) {
    if (closed) {
      stroke(ctx, new Path2D(`M${x - size} ${y} Q${x} ${y + size} ${x + size} ${y}`), INK, 2.4);
      continue;
    }
    const path = new Path2D();
    path.ellipse(x, y, size, size * 1.25, 0, 0, TAU);
    fill(ctx, path, INK);
    fill(ctx, circlePath(x - size * 0.3, y - size * 0.45, size * 0.36), '#fff');
  }
}

function smile(ctx, x, y, size) {
  stroke(ctx, new Path2D(`M${x - size} ${y} Q${x} ${y + size * 1.3} ${x + size} ${y}`), INK, 3);
}

function cheeks(ctx, left, right, y) {
  fill(ctx, circlePath(left, y, 4), 'rgba(255, 107, 74, 0.45)');
  fill(ctx, circlePath(right, y, 4), 'rgba(255, 107, 74, 0.45)');
}

function circlePath(x, y, radius) {
  const path = new Path2D();
  path.arc(x, y, radius, 0, TAU);
  return path;
}

function starPath(x, y, outer, inner) {
  const path = new Path2D();
  for (let i = 0; i < 10; i += 1) {
    const radius = i % 2 ? inner : outer;
    const turn = (i * Math.PI) / 5 - Math.PI / 2;
    path.lineTo(x + Math.cos(turn) * radius, y + Math.sin(turn) * radius);
  }
  path.closePath();
  return path;
}

function petals(x, y, out, radius, count) {
  const path = new Path2D();
  for (let i = 0; i < count; i += 1) {
    const turn = (i * TAU) / count - Math.PI / 2;
    const px = x + Math.cos(turn) * out;
    const py = y + Math.sin(turn) * out;
    path.moveTo(px + radius, py);
    path.arc(px, py, radius, 0, TAU);
  }
  path.moveTo(x + out, y);
  path.arc(x, y, out, 0, TAU);
  return path;
}
