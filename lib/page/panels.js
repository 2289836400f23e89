import { addressesOf, drawQr, isAtHome } from './qr.js';

/**
 * The tools beside the tray, and the panels they open: sound on and off, what is preferred, and the
 * invitation.
 */

const $ = (id) => document.getElementById(id);

/** The switches of the panel: the id of each is its preference's name after this. */
const SWITCH = 'prefer-';

/**
 * @param {import('./preferences.js').Preferences} preferences
 * @param {() => void} invite fills the invitation, before it is shown
 */
export function furnishPanels(preferences, invite) {
  furnishPanel($('settings-panel'), $('settings'));
  furnishPanel($('invitation'), $('invite'), invite);
  const sound = $('sound');
  const show = () => {
    sound.setAttribute('aria-pressed', preferences.get('sound'));
    sound.title = preferences.get('sound') ? 'Sound is on' : 'Sound is off';
    for (const input of $('settings-panel').querySelectorAll('input')) {
      const name = input.id.slice(SWITCH.length);
      if (input.type === 'checkbox') input.checked = preferences.get(name);
      else if (document.activeElement !== input) input.value = preferences.get(name);
    }
  };
  sound.addEventListener('click', () => preferences.set('sound', !preferences.get('sound')));
  $('settings-panel').addEventListener('input', ({ target }) => {
    const name = target.id.slice(SWITCH.length);
    preferences.set(name, target.type === 'checkbox' ? target.checked : target.value.trim());
  });
  preferences.onChange(show);
  show();
}

/** A modal dialog that a button opens. */
function furnishPanel(panel, button, prepare = () => {}) {
  button.addEventListener('click', () => {
    prepare();
    panel.showModal();
  });
  furnishDialog(panel);
}

/** A modal dialog: its own button, the Escape key and a click beside it close it. */
export function furnishDialog(panel) {
  panel.querySelector('.close').addEventListener('click', () => panel.close());
  panel.addEventListener('click', (event) => {
    const { left, right, top, bottom } = panel.getBoundingClientRect();
    const { clientX: x, clientY: y } = event;
    const beside = x < left || x > right || y < top || y > bottom;
    if (event.target === panel && beside) panel.close();
  });
}

/**
 * The invitation: an address to send, and to scan with a phone. A page that was opened at this
 * machine's own name (localhost) asks the server for the address others reach it by.
 */

/** Makes the buttons work. */
export function furnishInvitation() {
  $('copy').addEventListener('click', async () => {
    const done = await copy($('invitation-link'));
    $('copy').textContent = done ? 'Copied' : 'Copy it by hand';
  });
  $('share').hidden = typeof navigator.share !== 'function';
  $('share').addEventListener('click', () => {
    // A visitor that closes the browser's own dialog has changed plans: nothing is amiss.
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
  await drawQr(url, $('qr'));
}

/** @returns {Promise<{url: string, words: string, others: boolean}>} `others`: it is of use to them */
async function reachable() {
  const here = location.href.replace(/[?#].*/, '');
  const words = 'A person who opens this address has a desktop on the same torus.';
  if (!isAtHome()) return { url: here, words, others: true };
  const addresses = await addressesOf(here);
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
