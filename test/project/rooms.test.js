import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import t from 'tap';

import { ROOT } from '../support/server.js';

/** The rooms of the product, the lowest first: a room uses those before it, and none after it. */
const ROOMS = {
  native: {
    rooms: 'base torus feeds arena world store http relay server addon',
    files: /\.(h|cc)$/,
    uses: /#include "([^"]+)"/g,
    roomOf: (file, name) => (name.includes('/') ? name.split('/')[0] : null)
  },
  lib: {
    rooms: 'client report base torus feeds arena world http operator server',
    files: /\.js$/,
    uses: /(?:\bfrom|\bimport)\s*\(?'(\.[^']*)'/g,
    roomOf: (file, name) => relative(join(ROOT, 'lib'), join(dirname(file), name)).split('/')[0]
  }
};

for (const [top, { rooms, files, uses, roomOf }] of Object.entries(ROOMS)) {
  t.test(`no room of ${top}/ uses one above it`, async (t) => {
    const order = rooms.split(' ');
    let seen = 0;
    for (const [level, room] of order.entries()) {
      const home = join(ROOT, top, room);
      for (const name of readdirSync(home, { recursive: true }).filter((one) => files.test(one))) {
        const file = join(home, name);
        // What a comment names is no use.
        const code = readFileSync(file, 'utf8').replace(/\/\*.*?\*\//gs, '');
        for (const [, used] of code.matchAll(uses)) {
          const at = order.indexOf(roomOf(file, used) ?? room);
          if (at < 0 || at > level) t.fail(`${relative(ROOT, file)} uses ${used}`);
          seen += 1;
        }
      }
    }
    t.ok(seen > 100, `${seen} uses were seen`);
  });
}

/** The programs in C++: each room, and those it may use besides itself. */
const PROGRAMS = { client: '', desktop: 'sprites', swarm: 'base' };

t.test('no program in C++ uses a room of the server above base', async (t) => {
  for (const [room, rooms] of Object.entries(PROGRAMS)) {
    const allowed = [room, 'sprites', ...rooms.split(' ')];
    const home = join(ROOT, 'native', room);
    const names = readdirSync(home, { recursive: true });
    for (const name of names.filter((one) => /\.(h|cc)$/.test(one) && !one.startsWith('tests/'))) {
      const code = readFileSync(join(home, name), 'utf8');
      for (const [, used] of code.matchAll(ROOMS.native.uses)) {
        const [first, ...rest] = used.split('/');
        const isOwn = rest.length === 0 || used === '../client/src/json.h';
        t.ok(isOwn || allowed.includes(first), `${room}/${name} uses ${used}`);
      }
    }
  }
});
