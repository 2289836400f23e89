import { sleep } from './reload.js';

/** QR codes, drawn by script. */

const QUIET_MODULES = 4; // white modules around a QR code, as its standard requires
const RETRY_DELAY = 2000; // ms until loading the library is retried

let library;

/**
 * Loads the library, and retries until it is there. A retry has another query, since a browser caches the failure of a
 * module's address as long as the page lives.
 */
async function load() {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return (await import(`./qrcode.js${attempt > 0 ? `?${attempt}` : ''}`)).default;
    } catch {
      await sleep(RETRY_DELAY); // No contact.
    }
  }
}

/**
 * Draws a text as a QR code, in whole pixels, black on white in every color scheme.
 *
 * @param {string} text
 * @param {HTMLCanvasElement} canvas
 */
export async function drawQr(text, canvas) {
  const qrcode = await (library ??= load());
  const code = qrcode(0, 'M');
  code.addData(text);
  code.make();
  const count = code.getModuleCount();
  const size = Math.max(3, Math.floor(512 / (count + 2 * QUIET_MODULES)));
  canvas.width = (count + 2 * QUIET_MODULES) * size;
  canvas.height = canvas.width;
  const ctx = canvas.getContext('2d');
  ctx.fillStyle = '#fff';
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = '#000';
  for (let row = 0; row < count; row += 1) {
    for (let column = 0; column < count; column += 1) {
      if (!code.isDark(row, column)) continue;
      ctx.fillRect((column + QUIET_MODULES) * size, (row + QUIET_MODULES) * size, size, size);
    }
  }
}

/** Addresses at which others reach the server of a page that was opened at this machine's own name. */

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** @returns {boolean} whether this page was opened at an address that works on this machine only */
export const isLoopback = () => LOOPBACK.test(location.hostname);

/**
 * @param {string} base the server's URL
 * @returns {Promise<string[]|null>} URLs of the server, the likeliest first; none where the page was opened
 *     at such an address, or the server returns none; null without an answer
 */
export async function addressesOf(base) {
  if (!isLoopback()) return [];
  try {
    const response = await fetch(new URL('addresses', base));
    // A server that is busy, or gone from behind its proxy; or one without this request.
    if (!response.ok) return response.status >= 500 ? null : [];
    const { addresses } = await response.json();
    return Array.isArray(addresses) ? addresses.filter((one) => typeof one === 'string') : [];
  } catch {
    return null;
  }
}
