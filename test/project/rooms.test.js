import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import t from 'tap';

import { plainEnvironment } from '../support/cpp-build.js';
import { temporary } from '../support/processes.js';
import { ROOT } from '../support/server.js';

/** The rooms of the product, the lowest first. A room may use the rooms before it, and none after it. */
const ROOMS = {
  native: {
    rooms: 'base torus feeds arena world store http server addon',
    files: /\.(h|cc)$/,
    uses: /#include "([^"]+)"/g,
    roomOf: (file, name) => (name.includes('/') ? name.split('/')[0] : null)
  },
  lib: {
    rooms: 'client report base torus feeds grants arena world http operator server',
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
        // A file named in a comment is not used.
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

t.test('what a test or a bench imports is there', async (t) => {
  const { stdout } = spawnSync('git', ['ls-files', 'test/*.js'], { cwd: ROOT, encoding: 'utf8' });
  let seen = 0;
  for (const name of stdout.trim().split('\n')) {
    // An import begins a line. A file named in a text or a comment is no import.
    const code = readFileSync(join(ROOT, name), 'utf8');
    for (const [, used] of code.matchAll(/^(?:import|export|\}) [^'`]*?\bfrom '(\.[^']*)';$/gm)) {
      const file = join(ROOT, dirname(name), used);
      if (!existsSync(file)) t.fail(`${name} imports ${used}`);
      seen += 1;
    }
  }
  t.ok(seen > 500, `${seen} imports were seen`);
});

/** Rooms of the programs in C++, each with the rooms that it may use besides itself. */
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

const UNTIL = new URL('../support/until.js', import.meta.url);

t.test('a test that waits for ever fails by name, and those behind it run', async (t) => {
  const folder = temporary(t);
  const file = join(folder, 'some.mjs');
  writeFileSync(
    file,
    `import t from ${JSON.stringify(import.meta.resolve('tap'))};
     import { failWhenStuck } from ${JSON.stringify(UNTIL.href)};
     failWhenStuck(t);
     t.test('outer', async (t) => {
       await t.test('waits', () => new Promise(() => {}));
       t.pass('goes on');
     });
     t.test('next', async (t) => t.pass());`
  );
  const options = { env: plainEnvironment(), encoding: 'utf8' };
  const { stdout, status } = spawnSync(process.execPath, [file], options);
  t.not(status, 0);
  t.match(stdout, '"waits" waits for what never comes');
  t.match(stdout, /^ {4}not ok 1 - waits/m);
  t.match(stdout, /^ {4}ok 2 - goes on/m);
  t.match(stdout, /^ok 2 - next/m);
  t.notMatch(stdout, 'unfinished');
});

/** Needs of tests that `npm test` leaves out: the imports that show a need, and the names that such tests must have. */
const NEEDS = {
  Chromium: [
    /support\/(page-browser|arena-pages)\.js'/,
    /\.browser\.test\.js$|^(arena\/(.*pages|trouble)|bench\/.*|desktop\/together)\.test\.js$/
  ],
  'C++ programs': [
    /\b(cmakeBuild|sharedBuild)\b|support\/cpp-(probe|screen)\.js'/,
    /^client\/.*cpp.*\.test\.js$|^desktop\//
  ],
  'a broker': [
    /support\/(nats|world-servers)\.js'/,
    /^(world|deploy)\/|^page\/world\.browser\.test\.js$/
  ]
};

for (const [what, [uses, named]] of Object.entries(NEEDS)) {
  t.test(`a test that needs ${what} is named so that npm test leaves it out`, async (t) => {
    const home = join(ROOT, 'test');
    const files = readdirSync(home, { recursive: true }).filter((one) => /\.test\.js$/.test(one));
    const needing = files.filter((one) => uses.test(readFileSync(join(home, one), 'utf8')));
    t.ok(needing.length > 1);
    t.strictSame(
      needing.filter((one) => !named.test(one) && one !== 'project/rooms.test.js'),
      []
    );
  });
}
