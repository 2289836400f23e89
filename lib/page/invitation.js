/**
 * The invitation: an address to send, and to scan with a phone. A page that was opened at this
 * machine's own name (localhost) asks the server for the address others reach it by.
 */

const QUIET = 4; // modules of white around a QR code, as its standard asks for
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const $ = (id) => document.getElementById(id);

/** Makes the buttons work. */
export function furnishInvitation() {
  $('copy').addEventListener('click', async () => {
    const done = await copy($('invitation-link'));
    $('copy').textContent = done ? 'Copied' : 'Copy it by hand';
  });
  $('share').hidden = typeof navigator.share !== 'function';
  $('share').addEventListener('click', () => {
    // Whoever closes the browser's own dialog has changed his mind: nothing is amiss.
    navigator.share({ title: 'Sprites', url: $('invitation-link').value }).catch(() => {});
  });
}

/** Fills the invitation with the address that others reach this server by. */
export async function invite() {
  $('copy').textContent = 'Copy';
  const { url, words, others } = await reachable();
  $('invitation-words').textContent = words;
  $('invitation-link').value = url;
  $('qr').hidden = !others;
  const { default: qrcode } = await import('./qrcode.js');
  const code = qrcode(0, 'M');
  code.addData(url);
  code.make();
  draw(code, $('qr'));
}

/** @returns {Promise<{url: string, words: string, others: boolean}>} `others`: it is of use to them */
async function reachable() {
  const here = location.href.replace(/[?#].*/, '');
  const words = 'Whoever opens this address has a desktop on the same torus.';
  if (!LOOPBACK.test(location.hostname)) return { url: here, words, others: true };
  const addresses = await ask();
  if (addresses.length > 0) {
    const where = 'A phone must be in the same network.';
    return { url: addresses[0], words: `${words} ${where}`, others: true };
  }
  return {
    url: here,
    others: false,
    words:
      'This address works on this machine only: the server listens on no other, ' +
      'or the machine is in no network. Start it with --host 0.0.0.0 to let phones in.'
  };
}

async function ask() {
  try {
    const response = await fetch('addresses');
    const { addresses } = await response.json();
    return Array.isArray(addresses) ? addresses.filter((one) => typeof one === 'string') : [];
  } catch {
    return []; // Offline, or a server that doesn't say: then this page's own address has to do.
  }
}

async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    // A page over plain HTTP has no clipboard, but may copy what is selected.
    field.select();
    return document.execCommand('copy');
  }
}

/** Draws module by module, in whole pixels, black on white whatever the colors of the page. */
function draw(code, canvas) {
  const count = code.getModuleCount();
  const size = Math.max(3, Math.floor(512 / (count + 2 * QUIET)));
  canvas.width = (count + 2 * QUIET) * size;
  canvas.height = canvas.width;
  const ctx = canvas.getContext('2d');
  ctx.fillStyle = '#fff';
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = '#000';
  for (let row = 0; row < count; row += 1) {
    for (let column = 0; column < count; column += 1) {
      if (!code.isDark(row, column)) continue;
      ctx.fillRect((column + QUIET) * size, (row + QUIET) * size, size, size);
    }
  }
}
