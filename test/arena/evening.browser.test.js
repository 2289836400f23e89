import t from 'tap';

import {
  arenaRig,
  call,
  clapOfTheReadme,
  PAGES,
  says,
  shows,
  unlock
} from '../support/arena-pages.js';
import { amissTo } from '../support/page-browser.js';

/** An evening: a host with two browsers, ten phones, four games, and no terminal. All is done on the panel. */

const { browser, nothingElse, room, skip } = arenaRig(t);

const PHONES = 10;

const NAMES = Array.from({ length: PHONES }, (_, at) => `Guest ${at + 1}`);

/** The host's hands on the panel. */
const handsOn = (panel) => ({
  async choose(game) {
    await panel.click(`.chip[data-value=${game}]`);
    await panel.waitForSelector(`.chip[data-value=${game}][aria-pressed=true]`);
  },
  slide: (name, value) => panel.locator(`input[name=${name}]`).fill(String(value)),
  async start() {
    await says(panel, '#go', 'Start');
    await panel.click('#go');
    await says(panel, '#go', 'Stop');
  },
  async stop() {
    await panel.click('#go');
    await says(panel, '#go', 'Start');
  },
  click: (words) => panel.click(`button >> text=${words}`)
});

t.test('four games in one evening, by the panel alone', { skip }, async (t) => {
  const { clap } = clapOfTheReadme();
  const { visit } = await room(t, { games: { clap } });
  const [field, panel] = [await visit(PAGES.field, 'big'), await visit(PAGES.panel, 'desk')];
  await unlock(panel);
  const host = handsOn(panel);
  const phones = await Promise.all(NAMES.map(() => visit(PAGES.phone)));
  const all = (act) => Promise.all(phones.map((phone, at) => act(phone, at)));
  await all((phone, at) => call(phone, NAMES[at]));
  await says(field, '#count', String(PHONES));
  await says(panel, '#names', NAMES[0]);

  await t.test('pong: one half wins', async () => {
    await host.choose('pong');
    await host.slide('points', 21); // So that it goes on until all have their thumbs up.
    await host.slide('speed', 200);
    await host.start();
    await all((phone) => phone.press('[role=slider]', 'End'));
    await host.slide('points', 1);
    await shows(field, 'result');
    await says(field, '.pong-words', 'wins');
    await all((phone) => says(phone, '#over-title', / half /));
  });

  await t.test('the quiz: a podium by name, and all know their own places', async (t) => {
    await host.choose('quiz');
    await host.slide('seconds', 120);
    await host.slide('pause', 60);
    await host.start();
    await all((phone) => phone.waitForSelector('.choice'));
    await phones[0].click('.choice[data-at="1"]'); // It is right.
    await says(field, '.top', `1 of ${PHONES} have answered`);
    const late = PHONES - 1; // It does not answer.
    await all(
      (phone, at) => at > 0 && at < late && phone.click(`.choice[data-at="${at < 5 ? 1 : 2}"]`)
    );
    await says(field, '.top', `${late} of ${PHONES} have answered`);
    await host.click('Show the answer');
    await says(field, '.bar[data-right] .count', '5');
    await host.click('Next question');
    await says(field, '.top', 'Question 2');
    await host.click('Leave this question out');
    await says(field, '.top', 'Question 3');
    await host.click('To the result');
    await says(field, '.podium', '1st');
    const words = (at) => (at < 5 ? /^You are [1-5](st|nd|rd|th) of 9$/ : 'You are 6th of 9');
    await all((phone, at) =>
      says(phone, '#over-title', at === late ? 'The quiz is over' : words(at))
    );
    const winner = await field.textContent('.podium li:first-child .who');
    t.ok(NAMES.includes(winner));
    await panel
      .locator('#names button')
      .filter({ hasText: new RegExp(`: ${winner}$`) })
      .click();
    await says(field, '.podium li:first-child .who', /^Player \d+$/);
    t.strictSame(await amissTo(field), []);
  });

  await t.test('the worm: the room is in a good mood', async () => {
    await host.choose('worm');
    await host.slide('tenths', 2);
    await host.start();
    await all((phone) => phone.press('[role=slider]', 'End'));
    await says(field, '.worm-mood b', '+100');
    await host.stop();
    await all((phone) => says(phone, '#over-text', 'the room was'));
  });

  await t.test('a game of the host’s own, and good night', async () => {
    await host.choose('clap');
    await host.start();
    await all((phone) => phone.tap('.whole'));
    await says(field, '.whole', String(PHONES));
    await host.stop();
    await all((phone) => says(phone, '#over-title', 'The round is over'));
    await host.choose('lobby');
    await shows(field, 'lobby');
    await all((phone) => shows(phone, 'lobby'));
  });
  t.strictSame(browser.complaints, []);
});

nothingElse();
