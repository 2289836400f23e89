import { addressesOf, drawQr, isLoopback } from './qr.js';

/**
 * The tools beside the tray, and the panels they open: sound on and off, preferences, and the invitation.
 */

const $ = (id) => document.getElementById(id);

/** Prefix of the ids of the panel's inputs; the name of the preference follows. */
const ID_PREFIX = 'prefer-';

/**
 * @param {import('./preferences.js').Preferences} preferences
 * @param {() => void} invite fills the invitation before it is shown
 */
export function connectPanels(preferences, invite) {
  connectPanel($('settings-panel'), $('settings'));
  connectPanel($('invitation'), $('invite'), invite);
  const sound = $('sound');
  const show = () => {
    sound.setAttribute('aria-pressed', preferences.get('sound'));
    sound.title = preferences.get('sound') ? 'Sound is on' : 'Sound is off';
    for (const input of $('settings-panel').querySelectorAll('input')) {
      const name = input.id.slice(ID_PREFIX.length);
      if (input.type === 'checkbox') input.checked = preferences.get(name);
      else if (document.activeElement !== input) input.value = preferences.get(name);
    }
  };
  sound.addEventListener('click', () => preferences.set('sound', !preferences.get('sound')));
  $('settings-panel').addEventListener('input', ({ target }) => {
    const name = target.id.slice(ID_PREFIX.length);
    preferences.set(name, target.type === 'checkbox' ? target.checked : target.value.trim());
  });
  preferences.onChange(show);
  show();
}

/** Makes a button open a modal dialog. */
function connectPanel(panel, button, prepare = () => {}) {
  button.addEventListener('click', () => {
    prepare();
    panel.showModal();
  });
  connectDialog(panel);
}

/** Makes a modal dialog close by its own button, by the Escape key and by a click beside it. */
export function connectDialog(panel) {
  panel.querySelector('.close').addEventListener('click', () => panel.close());
  panel.addEventListener('click', (event) => {
    const { left, right, top, bottom } = panel.getBoundingClientRect();
    const { clientX: x, clientY: y } = event;
    const isOutside = x < left || x > right || y < top || y > bottom;
    if (event.target === panel && isOutside) panel.close();
  });
}

/**
 * The invitation: an address to send, and to scan with a phone. A page that was opened at this
 * machine's own name (localhost) asks the server for an address at which others reach it.
 */

/** A promise of what the invitation has: its buttons wait for an answer that comes late. */
let invitation;

/** Connects the buttons of the invitation. */
export function connectInvitation() {
  $('copy').addEventListener('click', async () => {
    await invitation;
    const isCopied = await copy($('invitation-link'));
    $('copy').textContent = isCopied ? 'Copied' : 'Copy it by hand';
  });
  $('share').hidden = typeof navigator.share !== 'function';
  $('share').addEventListener('click', async () => {
    const { url } = await invitation;
    // A visitor may close the browser's own dialog: that is no error.
    navigator.share({ title: 'Sprites', url }).catch(() => {});
  });
}

/** Fills the invitation with the address at which others reach this server. */
export async function fillInvitation() {
  $('copy').textContent = 'Copy';
  invitation = invitationAddress();
  const { url, words, worksForOthers } = await invitation;
  $('invitation-words').textContent = words;
  $('invitation-link').value = url;
  $('qr').hidden = !worksForOthers;
  await drawQr(url, $('qr'));
}

/** @returns {Promise<{url: string, words: string, worksForOthers: boolean}>} `worksForOthers`: it works for others */
async function invitationAddress() {
  const ownAddress = location.href.replace(/[?#].*/, '');
  const words = 'A person who opens this address has a desktop on the same torus.';
  if (!isLoopback()) return { url: ownAddress, words, worksForOthers: true };
  const addresses = (await addressesOf(ownAddress)) ?? [];
  if (addresses.length > 0) {
    const where = 'A phone must be in the same network.';
    return { url: addresses[0], words: `${words} ${where}`, worksForOthers: true };
  }
  return {
    url: ownAddress,
    worksForOthers: false,
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
    // A page over plain HTTP has no clipboard, but may copy the selection.
    field.select();
    return document.execCommand('copy');
  }
}
