/**
 * Makes one unit for the compiler of each room, and prints their paths for a binding.gyp:
 *
 *     node units.js FOLDER ROOM…        FOLDER/build/units/ROOM.cc includes every ROOM/*.cc
 *
 * FOLDER has the binding.gyp, ROOM is a folder; both are beside this file. What the units share, standard headers and V8's
 * above all, is read and compiled once a room: in a quarter of the CPU seconds that its files take one by one. Within a
 * room no two files may have a helper of one name: such a helper is one too many. A unit whose room has no new and no
 * lost file stays as it is, so that what is built of it does.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const HERE = import.meta.dirname;
const [folder, ...rooms] = process.argv.slice(2);
const home = join(HERE, folder);
const units = join(home, 'build/units');

mkdirSync(units, { recursive: true });
for (const room of rooms) {
  const files = readdirSync(join(HERE, room))
    .filter((file) => file.endsWith('.cc'))
    .sort();
  const text = files.map((file) => `#include "${room}/${file}"\n`).join('');
  const unit = join(units, `${room}.cc`);
  if (!existsSync(unit) || readFileSync(unit, 'utf8') !== text) writeFileSync(unit, text);
  console.log(relative(home, unit));
}
