import { LARGEST_PHOTO } from '../client/image-size.js';
import { PICTURES, decodeDataUrl } from '../client/sprite.js';
import { senderWords, capitalize, describeSprite } from './announcer.js';
import { decodePicture } from './images.js';
import { connectDialog } from './panels.js';
import { drawSticker } from './pictures.js';

/** A dialog with one sprite, large: its picture, its sender, and a file to save. */

const DRAWN_SIDE = 512; // pixels a side of a drawn sprite
const MAX_SCALE = 3; // most CSS pixels for a pixel: a larger scale shows nothing more

/** Parts that some system forbids in a file's name. */
const FORBIDDEN_IN_NAMES = /[\p{Cc}\p{Cf}"*/:<>?\\|]+|^[.\s]+|[.\s]+$/gu;

const $ = (id) => document.getElementById(id);

export class Viewer {
  #covers;
  #body = null;
  #showCount = 0;
  #file = '';

  /**
   * @param {import('./covers.js').Covers} covers
   * @param {(body: import('./desktop.js').Body) => void} onPutAway called to put the sprite away
   */
  constructor(covers, onPutAway) {
    this.#covers = covers;
    const panel = $('viewer');
    const putAway = () => {
      const body = this.#body;
      panel.close();
      onPutAway(body);
    };
    connectDialog(panel);
    $('viewer-away').addEventListener('click', putAway);
    panel.addEventListener('keydown', ({ key }) => {
      if (key === 'Delete' || key === 'Backspace') putAway();
    });
    $('viewer-cover').addEventListener('click', () => {
      covers.toggle(this.#body);
      this.#show();
    });
    panel.addEventListener('close', () => {
      if (panel.open) return; // The event comes a frame late: another sprite is open.
      this.#body = null;
      this.#clear();
    });
  }

  /** @param {import('./desktop.js').Body} body */
  open(body) {
    if (body.flight || $('viewer').open) return;
    this.#body = body;
    this.#show();
    $('viewer').showModal();
  }

  async #show() {
    this.#clear();
    const body = this.#body;
    const { sprite } = body;
    const showNumber = this.#showCount;
    const isStrangers = this.#covers.isStrangersPicture(body);
    const isCovered = this.#covers.isCovered(body);
    const kind = describeSprite({ ...sprite, name: '' }, 'a');
    const sender = body.stranger ? senderWords(sprite) || ' from a stranger' : '';
    $('viewer-title').textContent = sprite.name || capitalize(kind);
    const words = capitalize(`${sprite.name ? kind : ''}${sender}`.trim());
    $('viewer-words').textContent = words;
    $('viewer-picture').setAttribute('aria-label', describeSprite(sprite));
    $('viewer-cover').hidden = !isStrangers;
    $('viewer-cover').textContent = isCovered ? 'Show it' : 'Hide it';
    const image = isCovered
      ? { source: drawSticker('covered', DRAWN_SIDE) }
      : await imageOf(sprite);
    // Another sprite may be open by now, or none.
    if (showNumber !== this.#showCount || !this.#body) return;
    const { source, blob, type } = image;
    const canvas = $('viewer-picture');
    paint(canvas, source);
    if (!blob) return;
    if (!PICTURES.includes(sprite.picture)) {
      const size = `${canvas.width} × ${canvas.height}`;
      $('viewer-words').textContent = [words, size].filter(Boolean).join(' · ');
    }
    this.#file = URL.createObjectURL(blob);
    $('viewer-save').href = this.#file;
    $('viewer-save').download = fileName(sprite, type);
    $('viewer-save').hidden = false;
  }

  #clear() {
    this.#showCount += 1;
    $('viewer-save').hidden = true;
    $('viewer-picture').width = 0;
    URL.revokeObjectURL(this.#file);
    this.#file = '';
  }
}

/**
 * Returns the picture of a sprite, and a file to save: as it came, or a PNG of a drawn sprite.
 *
 * @returns {Promise<{source: CanvasImageSource, blob?: Blob, type?: string}>}
 */
async function imageOf({ picture, photo }) {
  if (PICTURES.includes(picture)) {
    const source = drawSticker(picture, DRAWN_SIDE);
    const blob = await new Promise((done) => void source.toBlob(done));
    return { source, blob, type: 'image/png' };
  }
  const { type, bytes } = decodeDataUrl(photo ?? picture);
  const source = await decodePicture(photo ?? picture, LARGEST_PHOTO);
  return source
    ? { source, blob: new Blob([bytes], { type }), type }
    : { source: drawSticker('torn', DRAWN_SIDE) };
}

/** Paints a picture, as large as the window allows. */
function paint(canvas, source) {
  canvas.width = source.width;
  canvas.height = source.height;
  canvas.getContext('2d').drawImage(source, 0, 0);
  canvas.style.setProperty('--shape', source.width / source.height);
  canvas.style.setProperty('--most', `${MAX_SCALE * source.width}px`);
  source.close?.();
}

function fileName(sprite, type) {
  const name = (sprite.name ?? '').replace(FORBIDDEN_IN_NAMES, ' ').trim();
  return `${name || describeSprite({ ...sprite, name: '' }, '').trim()}.${type.slice(6).replace('jpeg', 'jpg')}`;
}
