import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

import {
  buildClient,
  cmakeBuild,
  noClient,
  plainEnvironment,
  ROOT,
  sharedBuild,
  tool,
  UNITY
} from '../support/cpp-build.js';
import { shown } from '../support/documents.js';
import { startServer } from '../support/server.js';

/**
 * The C++ client in other programs: it compiles beside their macros, and CMake finds the installed client.
 */

const SOURCE = 'native/client';

t.setTimeout(600_000);

t.test(
  "it compiles where curl's header brings macros named min and max, as on Windows",
  { skip: noClient },
  async (t) => {
    const dir = t.testdir({
      curl: {
        'curl.h': [
          '#pragma once',
          '#include <bits/stdc++.h>', // before the macros, which standard headers may not tolerate
          '#include_next <curl/curl.h>',
          '#define min(a, b) (((a) < (b)) ? (a) : (b))',
          '#define max(a, b) (((a) > (b)) ? (a) : (b))',
          ''
        ].join('\n')
      },
      'program.cc':
        '#include <curl/curl.h>\n#include <sprites/client.h>\n#include <sprites/sprite.h>\n'
    });
    const files = ['src', 'include/sprites'].flatMap((folder) =>
      readdirSync(join(ROOT, SOURCE, folder)).map((name) => join(ROOT, SOURCE, folder, name))
    );
    // Other files never see the macros.
    const sources = files.filter((file) => /<curl\/curl.h>/.test(readFileSync(file, 'utf8')));
    t.ok(
      sources.every((file) => file.endsWith('.cc')),
      "no header brings curl's with it"
    );
    for (const file of [...sources, join(dir, 'program.cc')]) {
      await tool('g++', [
        '-fsyntax-only',
        '-std=c++17',
        `-I${dir}`,
        `-I${join(ROOT, SOURCE, 'include')}`,
        `-I${join(ROOT, SOURCE, 'src')}`,
        file
      ]);
    }
    t.ok(sources.length > 0);
  }
);

t.test(
  'a fresh project finds it: by find_package and by pkg-config, static and shared',
  { skip: noClient },
  async (t) => {
    const dir = t.testdir({ static: {}, shared: {} });
    const server = await startServer(t);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const builds = {
      static: buildClient,
      shared: () =>
        cmakeBuild({
          source: SOURCE,
          into: sharedBuild('shared'),
          define: { CMAKE_BUILD_TYPE: 'Debug', BUILD_SHARED_LIBS: 'ON', ...UNITY }
        })
    };
    for (const kind of Object.keys(builds)) {
      const prefix = join(dir, kind, 'prefix');
      const build = await builds[kind]();
      await tool('cmake', ['--install', build, '--prefix', prefix]);

      const fresh = join(dir, kind, 'fresh');
      mkdirSync(fresh);
      const options = 'sprites::Options options;';
      const hello = shown('native/client/README.md', 'A program with this `hello.cc`');
      t.match(hello, options);
      writeFileSync(
        join(fresh, 'hello.cc'),
        // With a log, whose last lines show where a hanging client is.
        hello.replace(
          options,
          `${options} options.server = "${server.url}";
          options.onLog = [](const std::string& line) { std::cerr << line << std::endl; };`
        )
      );
      writeFileSync(
        join(fresh, 'CMakeLists.txt'),
        shown('native/client/README.md', 'and this `CMakeLists.txt`')
      );
      const helloBuild = await cmakeBuild({
        source: fresh,
        into: join(fresh, 'build'),
        define: { CMAKE_PREFIX_PATH: prefix }
      });
      t.strictSame(
        await runHello(t, join(helloBuild, 'hello'), server),
        ['rocket', 'taken'],
        `${kind}: find_package`
      );

      if (kind === 'static') await checkBuildType(t, join(dir, kind, 'sub'));
      const lib = (await tool('find', [prefix, '-name', 'pkgconfig'])).trim();
      const env = plainEnvironment({ PKG_CONFIG_PATH: lib, LD_LIBRARY_PATH: join(lib, '..') });
      const flags = await tool('pkg-config', ['--cflags', '--libs', 'sprites'], { env });
      t.equal((await tool('pkg-config', ['--modversion', 'sprites'], { env })).trim(), version);
      const program = join(dir, kind, 'hello');
      await tool('g++', [
        ...['-std=c++17', join(fresh, 'hello.cc'), '-o', program],
        ...flags.trim().split(/\s+/)
      ]);
      t.strictSame(
        await runHello(t, program, server, env),
        ['rocket', 'taken'],
        `${kind}: pkg-config`
      );
    }
  }
);

/** Checks that the client, as part of another project, does not change the project's build type. */
async function checkBuildType(t, folder) {
  mkdirSync(folder);
  const lines = ['project(sub LANGUAGES CXX)', `add_subdirectory(${join(ROOT, SOURCE)} sprites)`];
  writeFileSync(
    join(folder, 'CMakeLists.txt'),
    ['cmake_minimum_required(VERSION 3.16)', ...lines, ''].join('\n')
  );
  const build = join(folder, 'build');
  await tool('cmake', ['-S', folder, '-B', build]);
  t.match(readFileSync(join(build, 'CMakeCache.txt'), 'utf8'), /^CMAKE_BUILD_TYPE:STRING=$/m);
}

/** Runs the README's program until Enter ends it. Returns its output lines, sorted. */
async function runHello(t, program, server, env = plainEnvironment()) {
  const child = spawn(program, [], { env, timeout: 60_000 });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  let output = '';
  let log = '';
  child.stderr.on('data', (chunk) => {
    log += chunk;
  });
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output.split('\n').length > 2) child.stdin.end('\n');
  }
  const [code, signal] = await ended;
  const counts = JSON.stringify(await server.status());
  const report = `it said:\n${output}its log:\n${log}the server's counts: ${counts}`;
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, report);
  return output
    .trim()
    .replace(/delivered|queued/, 'taken')
    .split('\n')
    .sort();
}
