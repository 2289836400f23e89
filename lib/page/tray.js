import { drawSticker } from './pictures.js';
import { PICTURES } from '../client/sprite.js';

/**
 * The tray below the desktop: drawn sprites to click or to drag out of it, and images from the visitor's
 * files. Also files that are dropped on the desktop.
 */

const DRAG_DISTANCE = 12; // CSS pixels from which a press is a drag, not a click

/**
 * Fills the tray.
 *
 * @param {object} parts
 * @param {HTMLElement} parts.tray its first child is the control for files
 * @param {HTMLInputElement} parts.file
 * @param {(picture: string, event?: PointerEvent) => void} parts.take called to take a sprite; with an
 *     event: into the hand of its pointer
 * @param {(files: File[]) => void} parts.open
 * @param {() => void} parts.focusStage called after a take by hand or from a file: moves the focus to the desktop, so
 *     that the next keys move the sprite, and don't press the button
 */
export function fillTray({ tray, file, take, open, focusStage }) {
  const first = tray.firstElementChild;
  for (const picture of PICTURES) {
    tray.insertBefore(makeButton(picture, take, focusStage), first);
  }
  makeToolbar([...tray.querySelectorAll('button'), file]);
  file.addEventListener('change', (event) => {
    open([...event.target.files]);
    event.target.value = '';
    focusStage();
  });
}

/**
 * Makes a toolbar one stop of the tab key; arrow keys move within it (ARIA Authoring Practices).
 *
 * @param {HTMLElement[]} controls
 */
function makeToolbar(controls) {
  for (const control of controls) {
    control.tabIndex = control === controls[0] ? 0 : -1;
    control.addEventListener('focus', () => {
      for (const one of controls) one.tabIndex = one === control ? 0 : -1;
    });
    control.addEventListener('keydown', (event) => {
      const index = controls.indexOf(control);
      const next = {
        ArrowRight: (index + 1) % controls.length,
        ArrowLeft: (index + controls.length - 1) % controls.length,
        Home: 0,
        End: controls.length - 1
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      controls[next].focus();
    });
  }
}

function makeButton(picture, take, focusStage) {
  const button = document.createElement('button');
  button.className = 'pick';
  button.type = 'button';
  button.title = `Take a ${picture}`;
  button.setAttribute('aria-label', `Take a ${picture}`);
  button.append(drawSticker(picture, 128));
  // A sprite dragged out of the tray is in the hand at once. A click lets it hop onto the desktop.
  let start = null;
  let isDragged = false;
  button.addEventListener('pointerdown', (event) => {
    if (event.button > 0) return;
    isDragged = false;
    start = { x: event.clientX, y: event.clientY };
    button.setPointerCapture(event.pointerId);
  });
  button.addEventListener('pointermove', (event) => {
    if (!start || Math.hypot(event.clientX - start.x, event.clientY - start.y) < DRAG_DISTANCE)
      return;
    start = null;
    isDragged = true;
    button.releasePointerCapture(event.pointerId);
    take(picture, event);
    focusStage();
  });
  button.addEventListener('click', (event) => {
    start = null;
    const isByKey = event.detail === 0;
    if (isByKey || !isDragged) take(picture);
    if (!isByKey) focusStage();
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
export function acceptDrops(desk, open) {
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
