import { LARGEST_PHOTO } from '../client/image-size.js';
import { PICTURES, decodeDataUrl } from '../client/sprite.js';
import { from, sentence, what } from './announcer.js';
import { decodePicture } from './images.js';
import { furnishDialog } from './panels.js';
import { drawSticker } from './pictures.js';

/** A dialog with one sprite, large: its picture, its sender, and a file to save. */

const DRAWN = 512; // pixels a side of a drawn sprite
const MORE = 3; // most CSS pixels for a pixel: a larger scale shows nothing more

/** Parts that some system forbids in a file's name. */
const UNNAMED = /[\p{Cc}\p{Cf}"*/:<>?\\|]+|^[.\s]+|[.\s]+$/gu;

const $ = (id) => document.getElementById(id);

export class Viewer {
  #covers;
  #body = null;
  #shown = 0;
  #file = '';

  /**
   * @param {import('./covers.js').Covers} covers
   * @param {(body: import('./desktop.js').Body) => void} onAway called to put the sprite away
   */
  constructor(covers, onAway) {
    this.#covers = covers;
    const panel = $('viewer');
    const away = () => {
      const body = this.#body;
      panel.close();
      onAway(body);
    };
    furnishDialog(panel);
    $('viewer-away').addEventListener('click', away);
    panel.addEventListener('keydown', ({ key }) => {
      if (key === 'Delete' || key === 'Backspace') away();
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
    const turn = this.#shown;
    const isStrangers = this.#covers.isStrangers(body);
    const isCovered = this.#covers.isCovered(body);
    const kind = what({ ...sprite, name: '' }, 'a');
    const whose = body.stranger ? from(sprite) || ' from a stranger' : '';
    $('viewer-title').textContent = sprite.name || sentence(kind);
    const words = sentence(`${sprite.name ? kind : ''}${whose}`.trim());
    $('viewer-words').textContent = words;
    $('viewer-picture').setAttribute('aria-label', what(sprite));
    $('viewer-cover').hidden = !isStrangers;
    $('viewer-cover').textContent = isCovered ? 'Show it' : 'Hide it';
    const image = isCovered ? { seen: drawSticker('covered', DRAWN) } : await imageOf(sprite);
    // Another sprite may be open by now, or none.
    if (turn !== this.#shown || !this.#body) return;
    const { seen, blob, type } = image;
    const canvas = $('viewer-picture');
    paint(canvas, seen);
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
    this.#shown += 1;
    $('viewer-save').hidden = true;
    $('viewer-picture').width = 0;
    URL.revokeObjectURL(this.#file);
    this.#file = '';
  }
}

/**
 * Returns the picture of a sprite, and a file to save: as it came, or a PNG of a drawn sprite.
 *
 * @returns {Promise<{seen: CanvasImageSource, blob?: Blob, type?: string}>}
 */
async function imageOf({ picture, photo }) {
  if (PICTURES.includes(picture)) {
    const seen = drawSticker(picture, DRAWN);
    const blob = await new Promise((done) => void seen.toBlob(done));
    return { seen, blob, type: 'image/png' };
  }
  const { type, bytes } = decodeDataUrl(photo ?? picture);
  const seen = await decodePicture(photo ?? picture, LARGEST_PHOTO);
  return seen
    ? { seen, blob: new Blob([bytes], { type }), type }
    : { seen: drawSticker('torn', DRAWN) };
}

/** Paints a picture, as large as the window allows. */
function paint(canvas, seen) {
  canvas.width = seen.width;
  canvas.height = seen.height;
  canvas.getContext('2d').drawImage(seen, 0, 0);
  canvas.style.setProperty('--shape', seen.width / seen.height);
  canvas.style.setProperty('--most', `${MORE * seen.width}px`);
  seen.close?.();
}

function fileName(sprite, type) {
  const name = (sprite.name ?? '').replace(UNNAMED, ' ').trim();
  return `${name || what({ ...sprite, name: '' }, '').trim()}.${type.slice(6).replace('jpeg', 'jpg')}`;
}
