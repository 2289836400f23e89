import { join } from 'node:path';

import t from 'tap';

import { says } from '../support/arena-pages.js';
import { MIRROR, writeAtomically } from '../support/arena.js';
import { amissTo, browserRig } from '../support/page-browser.js';
import { launch, SPRITES } from '../support/launch.js';
import { until } from '../support/until.js';

/** `sprites play FOLDER`: one game, for its author. */

const { browser, nothingElse, skip } = browserRig(t);

const COUNT = {
  ...MIRROR,
  'inputs.json': JSON.stringify({
    title: 'Count',
    inputs: { taps: { min: 0, max: 1e6, integer: true }, y: { min: 0, max: 1 } }
  }),
  'reduce.js':
    'export const reduce = ({ inputs }) => ({ sum: inputs.taps.reduce((a, b) => a + b, 0), named: [1] });',
  'phone.js':
    'export const start = ({ root }) => { root.textContent = "The first phone"; return { stop() {} }; };',
  'field.js': `export const start = ({ root }) => ({
    value({ value, names }) { if (value?.sum > 0) root.textContent = 'Bots count, ' + names[1]; },
    stop() {}
  });`
};

/** Starts `sprites play`. @returns {Promise<{url: string}>} the URL of its page, and the result of `launch` */
async function play(t, folder) {
  const started = launch(
    { 'log-level': 'warn' },
    { command: [...SPRITES, 'play', folder], env: { SPRITES_BOTS: '4' } }
  );
  t.teardown(() => started.child.kill('SIGKILL'));
  await started.listening;
  const addressLine = () => /^Try count: (http:\S+)$/m.exec(started.lines.join('\n'));
  await until(
    () => addressLine() !== null,
    () => started.lines.join('\n')
  );
  return { ...started, url: addressLine()[1] };
}

t.test('field, phone and panel in one window, bots, and what changes', { skip }, async (t) => {
  const folder = join(t.testdir({ count: COUNT }), 'count');
  const { url, child, ended, errors } = await play(t, folder);
  const page = await browser.open(url, { viewport: { width: 1440, height: 900 } });
  const [field, phone, panel] = ['field', 'play', 'control'].map((name) =>
    page.frameLocator(`iframe.${name}`)
  );
  await says(field, '#root', 'Bots count, Bot');
  await says(field, '#count', '5');
  await says(phone, '#root', 'The first phone');
  await says(panel, '#go', 'Stop');
  t.notMatch(page.url(), '#', 'the token is in no history');
  t.strictSame(await amissTo(page), []);

  const write = (name, text) => writeAtomically(join(folder, name), text);
  write('phone.js', COUNT['phone.js'].replace('first', 'second'));
  await says(phone, '#root', 'The second phone');
  await says(panel, '#round', 'Round 2, running');
  write('inputs.json', COUNT['inputs.json'].replace('Count', 'Counter'));
  await says(panel, '#games', 'Counter');
  write('bot.js', 'export const play = () => { throw new Error("no bot"); };');
  // Waits for the bots' error, before a failing reducer stops the game and its bots.
  const errorText = () => Buffer.concat(errors).toString();
  await until(() => errorText().includes('"why":"no bot"'), errorText);
  write('reduce.js', 'export const reduce = () => {\n  throw Error("oh"); };');
  await says(panel, '#failed-words', 'Counter was stopped: its reducer threw. oh (reduce.js:2)');
  write('reduce.js', 'export const reduce = () => ({ over: true });');
  await says(panel, '#round', 'Round 5, stopped');
  write('reduce.js', COUNT['reduce.js']);
  await says(panel, '#round', 'Round 6, running');
  t.notMatch(errorText(), 'SPRITES_BOTS', 'it is an option of play');
  await page.context().close();
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
});

t.test('what is no game, or not how it is called, is told in one line', async (t) => {
  const folder = t.testdir({ half: { 'inputs.json': '{}' }, count: COUNT, 'A B': { ...COUNT } });
  for (const [args, code, says] of [
    [[], 2, 'play takes the folder of a game'],
    [['--port', '0'], 2, 'play takes the folder of a game'],
    [[join(folder, 'none')], 1, /none: this is no game: .*none: it is no folder/],
    [[join(folder, 'half')], 1, /this is no game: .*half: it has no reduce\.js/],
    [[join(folder, 'A B')], 1, /this is no game: .*a game's name is a-z/],
    [[join(folder, 'count'), '--arena', 'hall'], 2, 'leave out --arena'],
    [[join(folder, 'count'), '--games', folder], 2, 'leave out --arena'],
    [[join(folder, 'count'), '--bots', '101'], 2, '--bots takes a whole number from 0 to 100']
  ]) {
    const { ended, errors, listening } = launch({}, { command: [...SPRITES, 'play', ...args] });
    listening.catch(() => {});
    t.strictSame(await ended, [code, null], args.join(' '));
    t.match(Buffer.concat(errors).toString(), says);
    t.match(Buffer.concat(errors).toString(), /^sprites: [^\n]+\n$/);
  }
});

nothingElse();
