import { make } from './elements.js';
import { arenaName } from './room.js';
import { writeStorage } from '../page/store.js';

/** The page of `sprites play`: field, phone and panel, each in a frame. All frames share this tab's storage. */

const FRAMES = { field: 'The field', play: 'A phone', control: 'The panel' };

const token = location.hash.slice(1);
if (token !== '') {
  writeStorage('sessionStorage', 'sprites.token', token); // The panel reads it there.
  history.replaceState(null, '', location.pathname);
}
for (const [path, title] of Object.entries(FRAMES)) {
  const src = new URL(`../${path}/${arenaName()}`, location.href).href;
  const how = { className: path, src, title, allow: 'fullscreen; screen-wake-lock' };
  make('iframe', { ...how, into: document.getElementById('frames') });
}
document.body.dataset.state = 'online';
