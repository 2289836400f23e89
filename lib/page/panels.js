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
