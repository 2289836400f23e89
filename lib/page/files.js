import { BOUNDS } from '../client/sprite.js';
import { FILE_MOST, shrink } from './images.js';

/** Image files on their way to being sprites. */

const FILES = 8; // that are taken at a time

/**
 * Makes a sprite of each image file.
 *
 * @param {Iterable<File>} files
 * @param {number|undefined} maxSprite bytes that the server takes
 * @param {(image: {picture: string, photo?: string, name: string}, step: number) => boolean} take of the how many-th;
 *     false: there is no room for more, which has been said
 * @returns {Promise<string>} what was amiss, in words; empty where nothing was
 */
export async function takeFiles(files, maxSprite, take) {
  const chosen = [...files];
  const amiss = [];
  if (chosen.length > FILES) {
    amiss.push(`Eight at a time: ${chosen.length - FILES} were not taken.`);
  }
  let step = 0;
  for (const file of chosen.slice(0, FILES)) {
    if (file.size > FILE_MOST) {
      amiss.push(`${file.name} is too large: 32 MB at most.`);
      continue;
    }
    const image = await shrink(file, maxSprite);
    if (!image) {
      amiss.push(`${file.name} is no image this browser can read.`);
    } else if (take({ ...image, name: stemOf(file.name) }, step)) {
      step += 1;
    } else {
      break;
    }
  }
  return amiss.join(' ');
}

/** A file's name without its ending, as far as it may name a sprite. */
function stemOf(name) {
  return asName(name.replace(/\.[^.]*$/, ''));
}

/** @returns {string} as much of a text as may be a name */
export function asName(text) {
  return [...text.trim()].slice(0, BOUNDS.name).join('');
}
