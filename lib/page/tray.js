import { drawSticker } from './pictures.js';
import { PICTURES } from '../client/sprite.js';

/**
 * The tray below the desktop: drawn sprites to click or to drag out of it, and images from the visitor's
 * files. Also files that are dropped on the desktop.
 */

const DRAGGED = 12; // CSS pixels from which a press is a drag, not a click

/**
 * Fills the tray.
 *
 * @param {object} parts
 * @param {HTMLElement} parts.tray its first child is the control for files
 * @param {HTMLInputElement} parts.file
 * @param {(picture: string, event?: PointerEvent) => void} parts.take called to take a sprite; with an
 *     event: into the hand of its pointer
 * @param {(files: File[]) => void} parts.open
 * @param {() => void} parts.toStage called after a take by hand or from a file: moves the focus to the desktop, so
 *     that the next keys move the sprite, and don't press the button
 */
export function furnishTray({ tray, file, take, open, toStage }) {
  const first = tray.firstElementChild;
  for (const picture of PICTURES) {
    tray.insertBefore(makeButton(picture, take, toStage), first);
  }
  rove([...tray.querySelectorAll('button'), file]);
  file.addEventListener('change', (event) => {
    open([...event.target.files]);
    event.target.value = '';
    toStage();
  });
}

/**
 * Makes a toolbar one stop of the tab key; arrow keys move within it (ARIA Authoring Practices).
 *
 * @param {HTMLElement[]} controls
 */
function rove(controls) {
  for (const control of controls) {
    control.tabIndex = control === controls[0] ? 0 : -1;
    control.addEventListener('focus', () => {
      for (const one of controls) one.tabIndex = one === control ? 0 : -1;
    });
    control.addEventListener('keydown', (event) => {
      const now = controls.indexOf(control);
      const next = {
        ArrowRight: (now + 1) % controls.length,
        ArrowLeft: (now + controls.length - 1) % controls.length,
        Home: 0,
        End: controls.length - 1
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      controls[next].focus();
    });
  }
}

function makeButton(picture, take, toStage) {
  const button = document.createElement('button');
  button.className = 'pick';
  button.type = 'button';
  button.title = `Take a ${picture}`;
  button.setAttribute('aria-label', `Take a ${picture}`);
  button.append(drawSticker(picture, 128));
  // A sprite dragged out of the tray is in the hand at once. A click lets it hop onto the desktop.
  let start = null;
  let dragged = false;
  button.addEventListener('pointerdown', (event) => {
    if (event.button > 0) return;
    dragged = false;
    start = { x: event.clientX, y: event.clientY };
    button.setPointerCapture(event.pointerId);
  });
  button.addEventListener('pointermove', (event) => {
    if (!start || Math.hypot(event.clientX - start.x, event.clientY - start.y) < DRAGGED) return;
    start = null;
    dragged = true;
    button.releasePointerCapture(event.pointerId);
    take(picture, event);
    toStage();
  });
  button.addEventListener('click', (event) => {
    start = null;
    const byKey = event.detail === 0;
    if (byKey || !dragged) take(picture);
    if (!byKey) toStage();
  });
  return button;
}

/**
 * Takes files that are dropped anywhere on the page.
 *
 * @param {HTMLElement} desk
 * @param {(files: FileList|undefined, where: {x: number, y: number}) => void} open `where`:
 *     on the desk
 */
export function takeDrops(desk, open) {
  desk.addEventListener('dragover', (event) => {
    event.preventDefault();
    desk.classList.add('dropping');
  });
  desk.addEventListener('dragleave', () => desk.classList.remove('dropping'));
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault(); // A file dropped beside the desktop must not replace the page.
    desk.classList.remove('dropping');
    const box = desk.getBoundingClientRect();
    const x = Math.min(box.width, Math.max(0, event.clientX - box.left));
    const y = Math.min(box.height, Math.max(0, event.clientY - box.top));
    open(event.dataTransfer?.files, { x, y });
  });
}
