import { join } from 'node:path';

import { TOKEN } from './feeds.js';
import { browserRig } from './page-browser.js';

/** Helpers of the arena's browser tests. */

export const SIZES = {
  tall: { width: 360, height: 640 },
  wide: { width: 640, height: 360 },
  desk: { width: 1280, height: 800 },
  big: { width: 1920, height: 1080 }
};

/**
 * @param {import('tap').Test} t the test file's root test
 * @returns {object} the members of browserRig, `room(t, how)`, and `playing(name, [how], test)`, a test with a room
 */
export function arenaRig(t) {
  const rig = browserRig(t);

  /**
   * Starts a server with the arena "hall", and returns helpers that open its pages.
   *
   * @param {import('tap').Test} t
   * @param {object} [how]
   * @param {object} [how.games] the test's games, as a folder of folders
   * @param {string[]} [how.args] further arguments of the server
   */
  async function room(t, { games = {}, args = [] } = {}) {
    const folder = t.testdir({ games, tokens: `${TOKEN}\n` });
    const options = ['--arena', 'hall', '--publish-token-file', join(folder, 'tokens')];
    const server = await rig.serve(...options, '--games', join(folder, 'games'), ...args);
    const { base } = server;
    t.teardown(() => server.stop('SIGKILL'));
    const by = async (way, path, size, more) => {
      const page = await rig.browser[way](new URL(path, base).href, {
        viewport: SIZES[size],
        hasTouch: size !== 'big',
        ...more
      });
      t.teardown(() => page.context().close());
      return page;
    };
    const visit = (path, size = 'tall', more = {}) => by('visit', path, size, more);
    return {
      base,
      server,
      visit,
      /** Opens a page as `visit` does, but does not wait until the page has entered. */
      open: (path, size = 'tall') => by('open', path, size, {}),
      /** Returns the value of the reduced feed, or with `/control` of the control feed. */
      async feed(of = '') {
        return (await (await fetch(new URL(`feed/arena/hall${of}`, base))).json()).value;
      },
      /** Sends a command to the control feed, as a panel does. */
      async command(members) {
        const response = await fetch(new URL('feed/arena/hall/control', base), {
          method: 'PATCH',
          headers: {
            Authorization: `Bearer ${TOKEN}`,
            'Content-Type': 'application/merge-patch+json'
          },
          body: JSON.stringify(members)
        });
        t.equal(response.status, 200, await response.text());
      }
    };
  }

  /** Runs a test in its own arena; `how`: see `room`. */
  function playing(name, how, test = how) {
    t.test(name, { skip: rig.skip }, async (t) => test(t, await room(t, how)));
  }

  return { ...rig, playing, room };
}

export const PAGES = { phone: 'play/hall', field: 'field/hall', panel: 'control/hall' };

/** Enters the token on the panel, as the host does. */
export async function unlock(panel, token = TOKEN) {
  await panel.fill('#token', token);
  await panel.click('#token-form button');
  if (token === TOKEN) await panel.locator('#main:focus').waitFor();
}

/** @returns {Promise<import('playwright-core').Page>} the unlocked panel; `visit` is a room's */
export async function unlocked(visit, size) {
  const panel = await visit(PAGES.panel, size);
  await unlock(panel);
  return panel;
}

/** Enters a player's name on a phone's page. */
export async function call(phone, name) {
  await phone.fill('#name', name);
  await phone.click('#naming button');
  await says(phone, '#named', `You are ${name}`);
}

/** Waits until an element shows this text. */
export const says = (page, selector, text) =>
  page.locator(selector).filter({ hasText: text }).first().waitFor();

/** Waits until the browser's page shows this page of the game. */
export const shows = (page, name) => page.waitForSelector(`body[data-page=${name}]`);
