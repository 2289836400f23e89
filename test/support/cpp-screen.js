import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import {
  cmakeBuild,
  missing,
  plainEnvironment,
  SANITIZING,
  sharedBuild,
  tool,
  UNITY
} from './cpp-build.js';
import { endProcess, temporary } from './processes.js';
import { until } from './until.js';

/** A color that has not moved for this time, in milliseconds, is at rest: some frames. */
const REST = 150;

/** Tolerance of each color component, of 255: windows dither and scale. */
const NEAR = 6;

/** The reason why the desktop can't be built or shown here, or false; for a test's `skip`. */
export const noDesktop = missing({
  programs: 'cmake g++ pkg-config Xvfb xdotool xprop import convert montage'.split(' '),
  packages: ['libcurl', 'sdl2', 'SDL2_image', 'pangocairo']
});

/**
 * Builds the desktop and its test programs.
 *
 * @param {object} [how]
 * @param {boolean} [how.sanitize] whether to build with AddressSanitizer; default: SANITIZING
 * @returns {Promise<string>} the folder with the programs
 */
export function buildDesktop({ sanitize = SANITIZING } = {}) {
  const strict = { SPRITES_TESTS: 'ON', SPRITES_WERROR: 'ON' };
  return cmakeBuild({
    source: 'native/desktop',
    into: sharedBuild(sanitize ? 'desktop-asan' : 'desktop'),
    define: sanitize
      ? {
          ...strict,
          ...UNITY,
          CMAKE_BUILD_TYPE: 'RelWithDebInfo',
          CMAKE_CXX_COMPILER: 'clang++',
          SPRITES_SANITIZE: 'address,undefined'
        }
      : { ...strict, ...UNITY, CMAKE_BUILD_TYPE: 'Debug', CMAKE_CXX_COMPILER: 'g++' }
  });
}

/**
 * A screen (Xvfb) for programs. xdotool moves the mouse and types. The pixels are read from the file that Xvfb keeps
 * them in.
 */
export class Screen {
  /** The environment for programs on this screen. */
  env;
  #pixels;

  /** @param {{width: number, height: number}} size in pixels */
  static async start(t, { width, height }) {
    const screen = new Screen();
    const folder = temporary(t);
    // -noreset: Xvfb would restart when its last client goes (xdotool, for one), and lose a program that just starts.
    const xvfb = spawn(
      'Xvfb',
      [
        ...`-displayfd 3 -screen 0 ${width}x${height}x24 -nolisten tcp -br -noreset`.split(' '),
        ...['-fbdir', folder]
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] }
    );
    t.teardown(() => endProcess(xvfb));
    const [number] = await once(xvfb.stdio[3], 'data');
    screen.env = plainEnvironment({
      DISPLAY: `:${String(number).trim()}`,
      SDL_VIDEODRIVER: 'x11',
      XAUTHORITY: '/dev/null',
      LC_ALL: 'C.UTF-8'
    });
    screen.#pixels = join(folder, 'Xvfb_screen0');
    return screen;
  }

  /** Runs an xdotool command line. */
  hand(...words) {
    return tool('xdotool', words.map(String), { env: this.env });
  }

  /** Sets a property of the root window, as a window manager does. */
  set(name, format, value) {
    const words = ['-root', '-f', name, format, '-set', name, value];
    return tool('xprop', words, { env: this.env });
  }

  /**
   * Drags the sprite at `from` to `to`, and throws it from there, by `dx` and `dy` within 0.1 seconds.
   * On a busy machine the throw is somewhat slower or quicker: tests need a tolerance.
   */
  async fling(from, to, { dx = 0, dy = 0 }) {
    const move = (x, y) => `mousemove ${Math.round(x)} ${Math.round(y)}`;
    const flick = Array.from({ length: 10 }, (_, i) => {
      const share = (i + 1) / 10;
      return `${move(to.x + dx * share, to.y + dy * share)} sleep 0.01`;
    });
    const way = [
      `${move(from.x, from.y)} sleep 0.05 mousedown 1 sleep 0.05`,
      `${move((from.x + to.x) / 2, (from.y + to.y) / 2)} sleep 0.05`,
      `${move(to.x, to.y)} sleep 0.2`,
      ...flick,
      'mouseup 1'
    ];
    await this.hand(...way.join(' ').split(' '));
  }

  /** Writes a screenshot as a PNG. */
  save(file) {
    return tool('import', ['-window', 'root', file], { env: this.env });
  }

  /**
   * Finds a color within an area.
   *
   * @param {number[]} color red, green, blue
   * @param {{x: number, y: number, width: number, height: number}} area
   * @returns {Promise<{count: number, x: number, y: number}>} the number of its pixels, and their center
   */
  async find(color, { x, y, width, height }) {
    const bytes = await readFile(this.#pixels);
    // An X window dump: a head of 32-bit numbers, then the colormap's entries of 12 bytes each, then the pixels.
    const head = (index) => bytes.readUInt32BE(4 * index);
    assert.equal(head(11), 32, 'bits a pixel');
    const start = head(0) + 12 * head(19);
    const line = head(12);
    const [right, bottom] = [Math.min(x + width, head(4)), Math.min(y + height, head(5))];
    const [red, green, blue] = color;
    let count = 0;
    let sumX = 0;
    let sumY = 0;
    for (let row = y; row < bottom; row++) {
      for (let column = x; column < right; column++) {
        const at = start + row * line + 4 * column;
        if (Math.abs(bytes[at + 2] - red) > NEAR) continue;
        if (Math.abs(bytes[at + 1] - green) > NEAR || Math.abs(bytes[at] - blue) > NEAR) continue;
        count++;
        sumX += column;
        sumY += row;
      }
    }
    return { count, x: Math.round(sumX / count), y: Math.round(sumY / count) };
  }

  /** Waits until at least `count` pixels of a color are there and at rest; with 0, until the color is gone. */
  async until(color, area, count, seconds) {
    let seen = { count: -1 };
    let since = 0;
    const look = async () => {
      const last = seen;
      seen = await this.find(color, area);
      if (seen.x !== last.x || seen.y !== last.y) since = performance.now();
      const still = performance.now() - since >= REST;
      return (count === 0 ? seen.count === 0 : seen.count >= count && still) && seen;
    };
    return until(look, () => `${seen.count} pixels of ${color}, not ${count}`, seconds);
  }
}

/** A running sprites-desktop on a screen. */
export class DesktopProgram {
  #child;
  #ended;
  #screen;

  /** Its stderr. */
  errors = '';

  constructor(t, program, screen, args, env = {}) {
    this.#screen = screen;
    this.#child = spawn(program, args, {
      // SDL and its drivers don't free all memory at exit: no leak detection.
      env: { ...screen.env, ASAN_OPTIONS: 'detect_leaks=0:exitcode=99', ...env },
      stdio: ['ignore', 'ignore', 'pipe']
    });
    this.#ended = once(this.#child, 'close');
    this.#child.stderr.on('data', (chunk) => {
      this.errors += chunk;
    });
    t.teardown(() => endProcess(this.#child, 'SIGKILL'));
  }

  /** Waits until its window has this title. */
  async titled(title, seconds) {
    const search = ['search', '--all', '--pid', this.#child.pid, '--name', `^${title}$`];
    const look = async () => {
      assert.equal(this.#child.exitCode, null, this.errors);
      try {
        const found = await this.#screen.hand(...search);
        return found.trim().split('\n')[0];
      } catch (error) {
        if (error.cause?.code !== 1) throw error; // 1: no such window yet
        return '';
      }
    };
    this.window = await until(look, () => `no window "${title}": ${this.errors}`, seconds);
  }

  focus() {
    return this.#screen.hand('windowfocus', '--sync', this.window);
  }

  /** Closes the program by SIGTERM, as the system does, and waits for its end. */
  async close() {
    this.#child.kill('SIGTERM');
    const [code, signal] = await this.#ended;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, this.errors);
  }
}
