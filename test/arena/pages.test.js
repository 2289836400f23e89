/* global MutationObserver, WakeLock, dispatchEvent, document, innerHeight, innerWidth, location */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import {
  arenaRig,
  call,
  PAGES,
  says,
  shows,
  SIZES,
  unlock,
  unlocked
} from '../support/arena-pages.js';
import {
  amissTo,
  denyStorage,
  drag,
  duplicate,
  memory,
  online,
  reloadItself
} from '../support/page-browser.js';
import { tool } from '../support/cpp-build.js';
import { shown } from '../support/documents.js';
import { MIRROR } from '../support/arena.js';
import { until } from '../support/until.js';

/** The arena's pages in a browser: the phone, the field and the panel. */

const { browser, nothingElse, playing, room, skip } = arenaRig(t);

const PICTURES = fileURLToPath(new URL('../pictures/', import.meta.url));

/** Returns the place of the ball in the field's last frame. */
const ballOf = (field) => field.evaluate(() => document.getElementById('root').dataset.ball);

/** An arena for one player. */
const ONE = { args: ['--arena-players', '1'] };

/** Removes a phone's player from the server, as the end of its lease does. */
async function forgetPlayer(phone) {
  const { player } = await memory(phone, 'arena.hall');
  await fetch(new URL(`../arena/hall/${player}/leave`, phone.url()), { method: 'POST' });
}

/** Hides a page, or shows it again, as its browser says it. */
const look = (page, hidden) =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

/** Waits until the slider has the focus, which it must keep while the page around it changes. */
const playsByKey = (phone) => phone.waitForSelector('[role=slider]:focus');

playing('pong, from join to end, by the panel', async (t, { visit }) => {
  const panel = await unlocked(visit, 'tall');
  await panel.click('.chip[data-value=pong]');
  await says(panel, '#game-title', 'Pong');

  const field = await visit(PAGES.field, 'big', { reducedMotion: 'no-preference' });
  await says(field, '#title', 'Pong');
  await says(field, '#count', '0');
  const phones = [await visit(PAGES.phone, 'tall'), await visit(PAGES.phone, 'wide')];
  await says(phones[0], '#big', '1');
  await says(phones[1], '#big', '2');
  await says(field, '#count', '2');

  // On a busy machine, five points would be won before the last check.
  await panel.locator('input[name=points]').fill('21');
  await panel.click('#go');
  for (const page of [field, ...phones]) await shows(page, 'play');
  await says(panel, '#go', 'Stop');
  await says(phones[0], '.side', 'You are left');
  await says(phones[1], '.side', 'You are right');
  await field.waitForFunction(() => {
    const [x] = (document.getElementById('root').dataset.ball ?? '8').split(' ').map(Number);
    return x !== 8;
  });
  t.match(await ballOf(field), /^-?\d/);

  await t.test('a thumb moves the paddle, and so do keys', async (t) => {
    await drag(phones[0], { x: 180, y: 300 }, { x: 180, y: 30 }, { finger: true });
    await phones[0].waitForSelector('[role=slider][aria-valuenow="100"]');
    await phones[1].press('[role=slider]', 'Home');
    await phones[1].waitForSelector('[role=slider][aria-valuenow="0"]');
    const inputs = await panel.waitForFunction(() =>
      Number(document.querySelectorAll('#figures dd')[1].textContent)
    );
    t.ok(inputs);
  });

  await t.test('a field that is reloaded goes on, and so does a panel', async () => {
    await field.reload();
    await shows(field, 'play');
    await field.waitForFunction(() => Number(document.getElementById('root').dataset.drawn) > 5);
    await panel.reload();
    await says(panel, '#go', 'Stop');
  });

  await t.test('a phone reloaded is the same player; one closed has left', async () => {
    await reloadItself(phones[0]);
    await online(phones[0]);
    await says(phones[0], '#small', '1');
    await phones[0].waitForSelector('[role=slider][aria-valuenow="100"]');
    await phones[1].close();
    await says(field, '#count', '1');
    await says(field, '.pong-halves', 'The machine');
  });

  await t.test('it ends, and says which half has won', async () => {
    await phones[0].press('[role=slider]', 'End');
    await panel.locator('input[name=points]').fill('1');
    await panel.locator('input[name=speed]').fill('200');
    await shows(field, 'result');
    await says(field, '.pong-words', 'wins');
    await says(panel, '#go', 'Start');
    const { winner } = await field.evaluate(() => document.querySelector('.pong-words').dataset);
    await says(phones[0], '#over-title', winner === 'left' ? 'Your half has won!' : 'The other');
    await says(phones[0], '#over-text', / to /);
    t.equal(await phones[0].locator('[role=slider]').isVisible(), false);
  });

  await t.test('another round begins in the middle, on the phone as well', async () => {
    await phones[0].waitForSelector('[role=slider][aria-valuenow="100"]', { state: 'attached' });
    await panel.locator('input[name=points]').fill('21'); // One point is won within seconds.
    await panel.click('#go');
    await phones[0].waitForSelector('[role=slider][aria-valuenow="50"]');
    await playsByKey(phones[0]);
  });
});

playing(
  'a round that is stopped is won by the half that leads',
  async (t, { command, feed, visit }) => {
    await command({ game: 'pong', settings: { speed: 200 }, running: true });
    const field = await visit(PAGES.field, 'big');
    const phone = await visit(PAGES.phone);
    await phone.press('[role=slider]', 'Home'); // The machine wins sooner or later.
    await until(async () => {
      const [left, right] = (await feed()).value?.score ?? [0, 0];
      return left !== right;
    });
    await command({ running: false });
    const { score } = (await feed()).value;
    await command({ page: 'result' });
    await says(field, '.pong-words', score[0] > score[1] ? 'Left wins' : 'Right wins');
    await says(phone, '#over-title', score[0] > score[1] ? 'Your half has won!' : 'The other half');
    await says(phone, '#over-text', score.join(' to '));
  }
);

/** Returns a copy of the quiz's folder with other questions, as in lib/arena/README.md. */
function quizWith(questions) {
  const folder = new URL('../../lib/arena/games/quiz/', import.meta.url);
  return {
    ...Object.fromEntries(
      readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder), 'utf8')])
    ),
    'content.json': JSON.stringify(questions)
  };
}

t.test('the quiz, from the names to the podium', { skip }, async (t) => {
  const quiz = quizWith([
    { question: 'Which one?', answers: ['This', 'That', 'Neither', 'Both', 'All'], right: 1 },
    ...['And now?', 'Why this?', 'The last?'].map((question) => {
      return { question, answers: ['Yes', 'No'], right: 0 };
    })
  ]);
  const { command, visit } = await room(t, { games: { quiz } });
  await command({ game: 'quiz', settings: { seconds: 120, pause: 60 } });
  const field = await visit(PAGES.field, 'big');
  const panel = await unlocked(visit, 'desk');
  const phones = [await visit(PAGES.phone, 'tall'), await visit(PAGES.phone, 'wide')];
  await phones[0].fill('#name', ' ');
  await phones[0].click('#naming button');
  await says(phones[0], '#name-wrong', 'Write a name');
  await call(phones[0], '<b>Ada</b>');
  await phones[1].fill('#name', 'Rude');
  await phones[1].press('#name', 'Enter');
  await phones[1].locator('#name-change:focus').waitFor(); // The focus stays, for players with a keyboard.
  t.strictSame(await amissTo(phones[0]), []);
  await phones[0].reload();
  await says(phones[0], '#named', 'You are <b>Ada</b>');

  const clickAgain = (selector) => panel.locator(selector).dispatchEvent('click', { detail: 2 });
  await panel.click('#go');
  await says(panel, '#go', 'Stop');
  await clickAgain('#go'); // A double click starts one round.
  await says(field, '.top', '0 of 2 have answered');
  for (const phone of phones) await says(phone, '.ask', 'Which one?');
  for (const page of [field, phones[0]]) {
    t.match(await page.locator('[role=timer]').getAttribute('aria-label'), /^\d+ seconds left$/);
  }
  await phones[0].setViewportSize({ width: 180, height: 320 }); // A zoom of 200%.
  const under = await phones[0].evaluate(() => {
    const at = (selector) => document.querySelector(selector).getBoundingClientRect();
    return at('.choice:last-child').bottom - at('.verdict').top;
  });
  t.ok(under <= 0, `the verdict lies on ${under} px of an answer`);
  await phones[0].click('.choice[data-at="4"]');
  await phones[0].setViewportSize(SIZES.tall);
  await phones[0].click('.choice[data-at="1"]');
  await says(field, '.top', '1 of 2 have answered');
  t.equal(await field.textContent('.count'), '', 'no player sees what others choose');
  for (const page of [field, panel, ...phones]) t.strictSame(await amissTo(page), []);
  await phones[1].click('.choice[data-at="2"]');
  await says(phones[0], '.verdict', /^Right! \d+ points\. You are 1st of 2\.$/);
  await says(phones[1], '.verdict', 'Not this time. You are 2nd of 2.');
  await says(field, '.bar[data-at="1"][data-right] .count', '1');
  await says(field, '.front', 'In front: \u2068<b>Ada</b>\u2069');
  await phones[1].focus('.choice[data-at="2"]');
  await panel.click('text=Next question');
  await says(panel, '.panel-quiz', 'Show the answer');
  await clickAgain('text=Show the answer'); // A double click ends one step.
  await says(field, '.top', 'Question 2 of 4');
  await phones[1].locator('.choice[data-at="0"]:focus').waitFor(); // The focus stays, for players with a keyboard.
  await phones[0].click('.choice[data-at="0"]');
  await says(field, '.top', '1 of 2 have answered');
  await reloadItself(phones[0]);
  await phones[0].waitForSelector('.choice[data-at="0"][aria-pressed=true]');
  await says(phones[0], '.verdict', 'You may change your mind');
  await panel.click('text=Show the answer');
  await says(phones[0], '.verdict', /^Right! [\d,]+ points\. You are 1st of 2\.$/);
  await reloadItself(phones[0]);
  await says(phones[0], '.verdict', /^You are 1st of 2\.$/);
  await says(phones[1], '.verdict', 'Not answered. You are 2nd of 2.');
  await panel.click('text=Next question');
  await says(field, '.top', 'Question 3 of 4');
  await panel.click('text=Leave this question out');
  await says(field, '.top', 'Question 4 of 4');
  const late = await visit(PAGES.phone); // This phone never answers.
  await says(late, '.ask', 'The last?');
  await panel.press('text=To the result', 'Enter');
  await shows(field, 'result');
  await panel.locator('[aria-disabled=true]:has-text("To the result"):focus').waitFor();
  await says(field, '.big', '\u2068<b>Ada</b>\u2069 has won');
  await says(field, '.podium', 'Rude');
  await says(field, '.asked', 'Which one?That50 % knew it');
  await says(phones[0], '#over-title', 'You are 1st of 2');
  await says(phones[0], '#over-text', '2 of 2 right');
  await says(phones[1], '#over-title', 'You are 2nd of 2');
  await says(late, '#over-title', 'The quiz is over');
  for (const page of [field, panel, ...phones]) t.strictSame(await amissTo(page), []);

  await t.test('a click puts a name away, on the podium as well', async () => {
    await panel.click('#names >> text=Rude');
    await says(field, '.podium', 'Player 2');
    await panel.locator('#names [aria-pressed=true]').filter({ hasText: 'Rude' }).click();
    await says(field, '.podium', 'Rude');
  });
  await panel.click('[data-value=lobby]');
  await shows(field, 'lobby');
  t.equal(await field.locator('.quiz').count(), 0, 'nothing is left of it');
});

t.test('the longest words of a quiz can be read on field and phone', { skip }, async (t) => {
  const text = 'Which of all the answers that follow here is the one that most of us choose? ';
  const long = { question: text.repeat(3).slice(0, 200), right: 0 };
  const word = 'Rindfleischetikettierungsueberwachungsaufgabenuebertragungsgesetz';
  const questions = [
    { ...long, answers: ['One', 'Two', 'Three', 'Four', 'Five', 'Six'] },
    { ...long, answers: new Array(6).fill(long.question) },
    { question: word, answers: new Array(6).fill(`${word} ${word} ${word}`), right: 0 }
  ];
  const { command, visit } = await room(t, { games: { quiz: quizWith(questions) } });
  const [field, phone] = [await visit(PAGES.field, 'big'), await visit(PAGES.phone, 'tall')];
  await command({ game: 'quiz', running: true, settings: { seconds: 99, pause: 60 } });
  for (const [page, answer, size] of [
    [phone, '.choice', 'tall'],
    [field, '.bar', 'big']
  ]) {
    await page.setViewportSize({ width: 320, height: 256 }); // 1280 by 1024 at 400%
    // The game's style sheet may come after its words.
    await until(async () => (await page.locator(answer).first().boundingBox()).width > 200);
    await page.setViewportSize(SIZES[size]);
  }
  await says(field, '.time', /^\d\d$/);
  const ring = await field.locator('.time').boundingBox();
  t.equal(ring.width, ring.height, 'two digits are in a circle');
  /** Returns the elements whose text is cut off. */
  const cut = (page, selector) =>
    page.evaluate(
      (all) =>
        [...document.querySelectorAll(all)]
          .filter(
            (one) =>
              one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1
          )
          .map((one) => `${one.className} ${one.textContent}`),
      selector
    );
  const isWhole = async (page, selector) =>
    t.same(await settled(page, () => cut(page, selector)), []);
  for (const at of questions.keys()) {
    await says(field, '.top', `Question ${at + 1} of 3`);
    await says(phone, '.choice', questions[at].answers[1]);
    t.equal(await phone.evaluate(() => document.querySelector('.phone-quiz').scrollTop), 0);
    const step = 2048 + 2 * at;
    for (const settings of [{ end: step }, { end: step + 1 }]) {
      await isWhole(field, '.bar, .bars, .field-quiz');
      await isWhole(phone, '.choice');
      t.ok(
        await phone.evaluate(() => document.querySelector('.choices').clientWidth <= innerWidth)
      );
      await phone.evaluate(() => document.querySelector('.choice:last-child').scrollIntoView());
      await command({ settings });
      if (settings.end === step) await field.waitForSelector('.bar[data-right]');
    }
  }
});

playing('the longest names stay on their podium', async (t, { base, command, feed, visit }) => {
  await command({ game: 'quiz', running: true });
  const post = (path, body) => fetch(new URL(path, base), { method: 'POST', body });
  for (let i = 0; i < 3; i += 1) {
    const { player } = await (await post('arena/hall')).json();
    if (i > 0) await post(`arena/hall/${player}/name`, JSON.stringify({ name: 'W'.repeat(24) }));
    await post(`arena/hall/${player}`, '{"question":0,"choice":0}');
  }
  await until(async () => (await feed()).value?.answered === 3);
  await command({ page: 'result' });
  const field = await visit(PAGES.field, 'big', { viewport: { width: 1024, height: 768 } });
  await says(field, '.podium', 'WWW');
  const rise = await settled(field, () =>
    field.evaluate(() => {
      const { bottom } = document.querySelector('.result-quiz .big').getBoundingClientRect();
      return [...document.querySelectorAll('.podium li')].filter(
        (one) => one.getBoundingClientRect().top < bottom
      );
    })
  );
  t.equal(rise.length, 0);
  const lines = await field.evaluate(() => {
    const range = document.createRange();
    const { firstChild } = document.querySelector('.podium .who');
    range.setStart(firstChild, 0);
    range.setEnd(firstChild, 'Player'.length);
    return range.getClientRects().length;
  });
  t.equal(lines, 1, 'the word is whole');
});

t.test('the panel edits the questions, and loads a file', { skip }, async (t) => {
  const quiz = quizWith([{ question: 'Which one?', answers: ['This', 'That'], right: 1 }]);
  const { command, visit } = await room(t, { games: { quiz } });
  await command({ game: 'quiz', settings: { seconds: 120 } });
  const panel = await unlocked(visit, 'desk');
  const late = [];
  await panel.route('**/content/quiz', (route) => void late.push(route), { times: 1 });
  await panel.click('summary');
  await until(() => late.length === 1);
  const first = panel.locator('fieldset').first();
  const questionField = first.getByLabel('Question', { exact: true });
  await panel.click('text=One more question');
  await questionField.fill('Mine?');
  await panel.click('text=Use these questions');
  await says(panel, '.edit .wrong', 'Question 1 needs 2 to 6 answers');
  const contentAnswered = panel.waitForResponse('**/content/quiz');
  await late[0].continue();
  await contentAnswered;
  await panel.evaluate(() => new Promise((go) => void setTimeout(go, 100))); // the page has read it
  t.equal(await questionField.inputValue(), 'Mine?', 'what is being written stays');
  t.match(await panel.textContent('.edit .wrong'), 'Question 1 needs', 'and what is said of it');
  await first.getByText('Remove').press('Enter');
  await panel.locator('button:has-text("One more question"):focus').waitFor();
  await panel.click('summary');
  await panel.click('summary');
  await panel.getByRole('group', { name: 'Question 1' }).waitFor();
  await questionField.fill('Who?');
  await first.getByLabel('A is right').check();
  await panel.click('text=One more question');
  await panel.click('text=Use these questions');
  await says(panel, '.edit .wrong', 'Question 2 needs a question of 1 to 200 characters.');
  await panel.locator('fieldset').nth(1).getByText('Remove').click();
  await first.getByText('One more answer').click();
  await first.getByLabel('Answer C').fill('Both');
  await panel.click('text=Use these questions');
  await says(panel, '.edit .wrong', 'These are the questions now.');
  t.strictSame(await amissTo(panel), []);
  const phone = await visit(PAGES.phone);
  await panel.click('#go');
  await says(phone, '.ask', 'Who?');
  await says(phone, '.choices', 'AThisBThatCBoth');

  const load = (name, text) =>
    panel.setInputFiles('.edit [type=file]', {
      ...{ name, mimeType: 'application/json', buffer: Buffer.from(text) }
    });
  await load('bad.json', '[');
  await says(panel, '.edit .wrong', 'Bad.json is no JSON.');
  await load('short.json', '[{"question":"Why?","answers":["So"],"right":0}]');
  await says(panel, '.edit .wrong', 'Question 1 needs 2 to 6 answers');
  await load('good.json', '[{"question":"Why?","answers":["So","Not"],"right":1}]');
  await says(panel, '.edit .wrong', '1 questions from good.json');
  const [saved] = await Promise.all([
    panel.waitForEvent('download'),
    panel.click('text=Save to a file')
  ]);
  const text = readFileSync(await saved.path(), 'utf8');
  t.strictSame(JSON.parse(text), [{ question: 'Why?', answers: ['So', 'Not'], right: 1 }]);
  await panel.click('text=Use these questions');
  await says(phone, '.ask', 'Why?');
  const isRead = ({ pathname }) => pathname.endsWith('/content/quiz');
  await panel.route(isRead, (route) =>
    route.request().method() === 'GET' ? route.abort() : route.continue()
  );
  await panel.click('text=Those that came with the quiz');
  await says(phone, '.ask', 'Which one?');
  await says(panel, '.edit .wrong', 'The questions can’t be read just now.');
});

playing('the worm follows the mood of the room', async (t, { command, visit }) => {
  await command({ game: 'worm', settings: { tenths: 2 }, running: true });
  const field = await visit(PAGES.field, 'big');
  const phones = [await visit(PAGES.phone, 'tall'), await visit(PAGES.phone, 'wide')];
  await phones[0].press('[role=slider]', 'End');
  await says(field, '.worm-mood b', '+50');
  for (const page of [field, phones[0]]) t.strictSame(await amissTo(page), []);
  await phones[1].press('[role=slider]', 'Home');
  await field.waitForFunction(() => document.querySelector('.worm-mood b').textContent === '0');
  await phones[0].close();
  await says(field, '.worm-mood b', '-100');
  await field.waitForFunction(() => Number(document.getElementById('root').dataset.drawn) > 20);
  t.match(await field.textContent('.worm-mood span'), /How does the room feel/);
  t.match(await field.textContent('#root [role=status]'), /The mood is [+-]?\d+/);
  t.equal(await field.locator('.worm-mood [role=status]').count(), 0, 'not ten times a second');
  await command({ running: false });
  await says(field, '#state', 'The round is over');
  await says(phones[1], '#over-text', 'the room was');
  await says(field, '.worm-mood b', '-100');
  const titles = await phones[1].evaluateHandle(() => {
    const titles = [];
    const title = document.getElementById('over-title');
    new MutationObserver(() => titles.push(title.textContent)).observe(title, { childList: true });
    return titles;
  });
  await command({ running: true });
  await says(phones[1], '#state', 'You play');
  t.strictSame(await titles.jsonValue(), [], 'a round that begins tells of no end');
});

t.test('the game of the README is played', { skip }, async (t) => {
  const names = ['inputs.json', 'reduce.js', 'phone.js', 'field.js'];
  const texts = names.map((name) => shown('lib/arena/README.md', `\nIn \`${name}\``).trim());
  t.ok(texts.join('\n').split('\n').length <= 30);
  const clap = Object.fromEntries(names.map((name, at) => [name, texts[at]]));
  const { command, visit } = await room(t, { games: { clap } });
  const field = await visit(PAGES.field, 'big');
  const phones = [await visit(PAGES.phone, 'tall'), await visit(PAGES.phone, 'wide')];
  await command({ game: 'clap', running: true });
  await phones[0].tap('.whole');
  await phones[0].tap('.whole');
  await phones[1].tap('.whole');
  await says(field, '.whole', '3');
  await command({ running: false });
  for (const phone of phones) await says(phone, '#over-title', 'The round is over');
  await command({ running: true });
  await phones[0].tap('.whole');
  await field.waitForFunction(() => document.querySelector('.whole').textContent === '1');
});

playing('a thumb moves beside a finger that rests', async (t, { command, visit }) => {
  await command({ game: 'pong', running: true });
  const phone = await visit(PAGES.phone);
  await phone.waitForSelector('[role=slider]');
  const session = await phone.context().newCDPSession(phone);
  const touch = (type, ...touchPoints) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints });
  const rest = { x: 20, y: 560, id: 0 };
  await touch('touchStart', rest);
  await phone.waitForSelector('[role=slider][aria-valuenow="0"]');
  await touch('touchStart', rest, { x: 180, y: 300, id: 1 });
  await touch('touchMove', rest, { x: 180, y: 20, id: 1 });
  await phone.waitForSelector('[role=slider][aria-valuenow="100"]');
  await touch('touchEnd');
  await phone.locator('[data-held]').waitFor({ state: 'detached' });
});

playing('a phone forgotten, or offline, says so and joins', async (t, { command, visit }) => {
  await command({ game: 'pong', running: true });
  const phone = await visit(PAGES.phone);
  await says(phone, '#small', '1');
  await forgetPlayer(phone);
  await phone.press('[role=slider]', 'ArrowUp');
  await says(phone, '#toast', 'You were out of the game');
  await says(phone, '#small', '2');
  await says(phone, '.side', 'You are right');
  await playsByKey(phone);

  // Only the feeds are lost, from the next poll on: the command answers the parked one.
  let answerPoll = (route) => route.abort();
  await phone.route('**/feeds', (route) => answerPoll(route));
  await command({ rate: 5 });
  await says(phone, '#state', 'No contact');
  await phone.context().setOffline(true);
  await phone.press('[role=slider]', 'ArrowUp');
  await says(phone, '#out', 'Your phone is offline');
  await phone.focus('#now');
  let answerPolls;
  const polls = new Promise((go) => (answerPolls = go));
  answerPoll = (route) => {
    const isProof = route.request().postDataJSON().hold === 0;
    return (isProof ? Promise.resolve() : polls).then(() => route.continue());
  };
  await phone.context().setOffline(false);
  await online(phone);
  await phone.locator('#out').waitFor({ state: 'hidden' });
  await says(phone, '#state', 'You play'); // The poll is parked, without news.
  answerPolls();
  t.equal(await phone.textContent('#small'), '2');
  await playsByKey(phone);

  // A network that fails without an event, and loses a poll.
  const panel = await unlocked(visit, 'desk');
  let isGone = true;
  const eaten = [];
  for (const page of [phone, panel]) {
    const eat = (route) => void eaten.push(route.request().postDataJSON().hold);
    await page.route('**/feeds', eat, { times: 1 });
    await page.route('**/arena/hall/**', (route) => (isGone ? route.abort() : route.continue()));
  }
  await command({ page: 'result' });
  await until(() => eaten.length === 2);
  t.ok(Math.max(...eaten) < 20, 'it ends by itself');
  const old = () => new Promise((go) => void setTimeout(go, 1100)); // A wake leaves younger polls alone.
  for (const page of [phone, panel]) await page.evaluate(old);
  await command({ page: 'lobby' });
  await phone.press('[role=slider]', 'ArrowUp');
  await says(phone, '#out', 'No contact');
  await says(panel, '#state', 'No contact');
  isGone = false;
  await shows(phone, 'lobby');
  await panel.locator('[data-value=lobby][aria-pressed=true]').waitFor();
});

t.test('what a phone shows is what the server has of it', { skip }, async (t) => {
  const phoneJs = `export function start({ root, send, input }) {
    let { taps = 0 } = input;
    for (const [name, act] of [['up', () => send({ y: 1 })], ['tap', () => send({ taps: ++taps })]]) {
      const button = document.createElement('button');
      button.id = name;
      button.addEventListener('click', act);
      root.append(button);
    }
    return { stop() {} };
  }`;
  const games = { two: { ...MIRROR, 'phone.js': phoneJs } };
  const { command, feed, visit } = await room(t, { games });
  await command({ game: 'two', running: true });
  const phone = await visit(PAGES.phone);
  const press = (id) => phone.locator(`#${id}`).dispatchEvent('click');
  const has = (wanted) =>
    until(async () => {
      const { y, taps } = (await feed()).value ?? {}; // null when the round begins
      return JSON.stringify([y, taps]) === JSON.stringify(wanted);
    });
  await press('up');
  await press('tap');
  await has([[1], [1]]);

  await t.test('after the lobby in the middle of a round', async () => {
    await command({ page: 'lobby' });
    await phone.locator('#lobby').waitFor();
    await command({ page: 'play' });
    await shows(phone, 'play');
    await press('tap');
    await has([[1], [2]]);
  });

  await t.test('after a reload, and one before the control has come', async () => {
    await phone.route('**/feeds', () => {}); // No answer while that page lives.
    await reloadItself(phone);
    await online(phone);
    await phone.unroute('**/feeds');
    await reloadItself(phone);
    await press('tap');
    await has([[1], [3]]);
  });

  await t.test('after a browser has ended the page unseen', async () => {
    await press('tap');
    await has([[1], [4]]);
    await look(phone, true);
    await phone.evaluate(() => {
      navigator.sendBeacon = () => true;
      for (const name of ['setItem', 'removeItem']) Storage.prototype[name] = () => {};
    });
    await reloadItself(phone);
    await press('tap');
    await has([[1], [5]]);
  });

  await t.test('and as another player', async () => {
    await forgetPlayer(phone);
    await press('tap');
    await says(phone, '#small', '2');
    await press('tap');
    await press('tap');
    await has([[0.5], [2]]);
  });
});

playing('a phone out of a full arena comes in later', ONE, async (t, { command, open, visit }) => {
  await command({ game: 'pong', running: true });
  const first = await visit(PAGES.phone);
  const second = await open(PAGES.phone);
  await says(second, '#out-words', 'The game is full. You come in as soon as a player leaves.');
  await says(second, '#state', 'Out of the game');
  await first.close();
  await online(second);
  await second.locator('#out').waitFor({ state: 'hidden' });
});

playing('a name being written stays in its field, and may be of emoji', async (t, { visit }) => {
  const phone = await visit(PAGES.phone);
  await call(phone, 'Ada');
  await phone.click('#name-change');
  await phone.fill('#name', 'G'.repeat(25));
  await phone.click('#naming button');
  await says(phone, '#name-wrong', 'Write a name, of up to 24 characters.');
  const isTold = (answer) => answer.url().endsWith('/name') && answer.status() === 204;
  const nameAccepted = phone.waitForResponse(isTold);
  await forgetPlayer(phone);
  await phone.evaluate(() => dispatchEvent(new Event('online'))); // Otherwise the name would come a little later.
  await nameAccepted;
  await says(phone, '#big', '2');
  // When a later answer has come, the page has read the one before.
  const hasRead = () => phone.evaluate(async () => (await fetch('../games')).text());
  await hasRead();
  t.equal(await phone.isVisible('#name'), true);
  t.match(await phone.textContent('#name-wrong'), 'Write a name', 'nor is what is wrong with it');
  await call(phone, '🦊'.repeat(24));

  // The same, but nothing is written yet.
  let answer;
  await phone.route(/\/name$/, (route) => void (answer = () => route.continue()));
  await forgetPlayer(phone);
  await phone.evaluate(() => dispatchEvent(new Event('online')));
  await until(() => answer);
  await phone.click('#name-change');
  const acceptedAgain = phone.waitForResponse(isTold);
  await answer();
  await acceptedAgain;
  await hasRead();
  await phone.keyboard.type('Eve');
  await phone.unroute(/\/name$/);
  await phone.keyboard.press('Enter');
  await says(phone, '#named', 'You are Eve');
});

playing('a name under the finger stays there until it is let go', async (t, { visit }) => {
  const panel = await unlocked(visit, 'desk');
  await call(await visit(PAGES.phone), 'Rude');
  const second = await visit(PAGES.phone);
  const chip = panel.locator('#names button').filter({ hasText: 'Rude' });
  await chip.hover();
  await panel.mouse.down();
  // The page reads the answer as a stream, and a test can't read it then: a route sees it before.
  const newer = new Promise((comes) => {
    void panel.route(/names\?/, async (route) => {
      const response = await route.fetch();
      const body = await response.text();
      await route.fulfill({ response, body });
      if (body.includes('Ada')) comes();
    });
  });
  await call(second, 'Ada');
  await newer;
  await panel.unrouteAll({ behavior: 'ignoreErrors' });
  await panel.waitForRequest(/status/); // by then the page has handled the answer
  await panel.mouse.up();
  await panel.locator('#names [aria-pressed=true]').filter({ hasText: 'Rude' }).waitFor();
  await says(panel, '#names', 'Ada');
});

playing('a phone duplicated in another tab is another player', async (t, { command, visit }) => {
  await command({ game: 'quiz', running: true });
  const phone = await visit(PAGES.phone);
  await says(phone, '#small', '1');
  const copy = await duplicate(phone);
  await says(copy, '#small', '2');
  await reloadItself(phone);
  await online(phone);
  await says(phone, '#small', '1');
});

playing('a phone that is not looked at stays out', async (t, { base, command, visit }) => {
  await command({ game: 'pong', running: true });
  const phone = await visit(PAGES.phone);
  await look(phone, true);
  await forgetPlayer(phone);
  const notFound = phone.waitForResponse((answer) => answer.status() === 404);
  await phone.press('[role=slider]', 'Home');
  await notFound;
  await phone.evaluate(async () => (await fetch('../games')).text()); // any further request has come before this answer
  const players = async () =>
    (await (await fetch(new URL('arena', base))).json()).arenas[0].players;
  t.equal(await players(), 0);
  await look(phone, false);
  await says(phone, '#small', '2');
  t.equal(await players(), 1);
});

t.test('a round has no result of an earlier one, and no value', { skip }, async (t) => {
  const phoneJs = `export const start = ({ root }) => ({
    result: ({ round }) => round,
    value: ({ round }) => root.append(round),
    stop() {}
  });`;
  const { visit } = await room(t, { games: { twice: { ...MIRROR, 'phone.js': phoneJs } } });
  const phone = await visit(PAGES.phone);
  const results = await phone.evaluate(async () => {
    const { GameStage } = await import(new URL('../arena-pages/room.js', location.href).href);
    const root = document.createElement('div');
    const stage = await new Promise((go) => {
      const one = new GameStage({
        file: 'phone.js',
        root,
        startOptions: () => ({}),
        onChange: () => go(one)
      });
      one.control({ game: 'twice', page: 'play', round: 1 });
    });
    stage.reduced({ game: 'twice', round: 1 });
    const first = stage.result();
    stage.control({ game: 'twice', page: 'play', round: 2 });
    const second = stage.result();
    stage.reduced({ game: 'twice', round: 1 }); // the reduced feed may be behind the control's
    stage.reduced({ game: 'twice', round: 2, value: null }); // the round has no value yet
    const none = stage.result();
    stage.reduced({ game: 'twice', round: 2 });
    const third = stage.result();
    stage.reduced({ game: 'twice', round: 0 });
    stage.control({ game: 'twice', page: 'play', round: 0 }); // the server has restarted
    return [first, second ?? null, none ?? null, third, root.textContent];
  });
  t.strictSame(results, [1, null, null, 2, '1220']);
});

playing('a server that starts anew has new figures', async (t, { command, visit }) => {
  await command({ game: 'load', running: true });
  const panel = await visit(PAGES.panel, 'desk');
  const common = { rss: 1e8, recentStallMs: 1, parked: 0, clients: 0, lost: 0 };
  const looks = [
    { run: 'a', cpuSeconds: 8, inputs: 1000, reductions: 1000 },
    { run: 'a', cpuSeconds: 9, inputs: 1100, reductions: 1100 },
    { run: 'b', cpuSeconds: 10, inputs: 10, reductions: 10 }, // The start has read a large state.
    { run: 'b', cpuSeconds: 11, inputs: 20, reductions: 20 }
  ];
  await panel.route(/hall\/status$/, (route) =>
    route.fulfill({ json: { ...common, ...(looks.length > 1 ? looks.shift() : looks[0]) } })
  );
  await panel.evaluate(() => {
    const figures = document.getElementById('figures');
    globalThis.seen = '';
    new MutationObserver(() => {
      globalThis.seen += figures.textContent;
    }).observe(figures, { subtree: true, childList: true });
  });
  await unlock(panel);
  await until(() => looks.length === 1);
  const cpu = /The server’s CPU: of one core\d+ %0 %/; // of the last two looks
  await says(panel, '#load-figures tr', cpu);
  const figures = await panel.evaluate(() => globalThis.seen);
  t.match(figures, /Inputs a second[1-9]/);
  t.notMatch(figures, /second-|core-/);
});

playing('the screens of phones and of the field stay on', async (t, { visit }) => {
  for (const path of [PAGES.phone, PAGES.field]) {
    const page = await visit(path);
    await page.addInitScript(() => {
      WakeLock.prototype.request = async (type) => {
        document.documentElement.dataset.awake = type;
        return { released: false };
      };
    });
    await page.reload();
    await page.waitForSelector('[data-awake=screen]');
  }
});

playing('browsers that may keep nothing play all the same', async (t, { command, visit }) => {
  await command({ game: 'quiz', running: true, settings: { seconds: 120 } });
  const pages = {};
  for (const [name, path] of Object.entries(PAGES)) {
    pages[name] = await visit(path);
    await pages[name].addInitScript(denyStorage);
    await pages[name].reload();
  }
  await says(pages.field, '.big', 'light');
  await says(pages.phone, '.ask', 'light');
  await unlock(pages.panel);
  await says(pages.panel, '#go', 'Stop');
});

/** Returns elements outside the window, and parts of the address that have a line break within. */
const amissNow = (page) =>
  page.evaluate(() => {
    const isOut = ({ top, left, bottom, right }) =>
      top < -1 || left < -1 || bottom > innerHeight + 1 || right > innerWidth + 1;
    const shown = [...document.querySelectorAll('body *')].filter(
      (element) => element.checkVisibility() && !element.matches('.unseen, canvas.sticker')
    );
    const outside = shown.filter((one) => isOut(one.getBoundingClientRect()));
    const broken = [...document.querySelectorAll('#address span')]
      .flatMap(({ childNodes }) => [...childNodes])
      .filter((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return range.getClientRects().length > 1;
      });
    return [...outside.map((one) => one.outerHTML), ...broken.map((one) => one.textContent)];
  });

/** Returns the findings that remain when the page has had time to settle. */
async function settled(page, find) {
  let found = await find();
  for (let i = 0; i < 40 && found.length > 0; i += 1) {
    await page.waitForTimeout(50);
    found = await find();
  }
  return found;
}

const amiss = (page) => settled(page, () => amissNow(page));

t.test('each state of the field, on each screen', { skip }, async (t) => {
  const word = 'Donaudampfschifffahrtsgesellschaft';
  const broken = {
    ...MIRROR,
    'inputs.json': MIRROR['inputs.json'].replace('Mirror', word),
    'reduce.js': 'export const reduce = () => { throw new Error("no more"); };'
  };
  const { command, visit } = await room(t, { games: { broken } });
  const field = await visit(PAGES.field, 'big');
  const play = { game: 'pong', running: true };
  const states = [
    ['lobby', { game: 'pong', page: 'lobby', running: false }, '#title', 'Pong'],
    ['before', { page: 'play' }, '#toast', 'It begins soon'],
    ['nobody', play, '#toast', 'Nobody plays yet: scan to join'],
    ['play', play, '#state', 'Round'],
    ['paused', { page: 'play', running: false }, '#toast', 'The round is over'],
    ['failed', { game: 'broken', running: true }, '#over-title', `${word} has stopped`],
    ['result', { game: 'pong', page: 'result', running: false }, '#state', 'It begins soon']
  ];
  let phone;
  for (const [state, members, selector, text] of states) {
    if (state === 'play') phone = await visit(PAGES.phone);
    await command(members);
    await says(field, selector, text);
    t.ok((await field.getByRole('status').filter({ hasText: text }).count()) <= 1, 'said once');
    await field.waitForSelector(`body[data-players="${phone ? 1 : 0}"]`);
    const { failed } = await field.evaluate(() => ({ ...document.body.dataset }));
    t.equal(failed !== undefined, state === 'failed');
    if (['play', 'result'].includes(state)) {
      await field.locator('#toast').waitFor({ state: 'hidden' });
    }
    for (const size of ['desk', '1600 900', 'big', '3840 2160']) {
      const [width, height] = size.split(' ').map(Number);
      await field.setViewportSize(SIZES[size] ?? { width, height });
      t.strictSame(await amiss(field), [], `${state} ${size}`);
      t.equal(await field.locator('#full').isVisible(), true);
    }
    t.strictSame(await amissTo(field), [], state);
    if (phone) t.strictSame(await amissTo(phone), [], `${state}, phone`);
  }
});

playing('every page fits every screen, and can be heard', async (t, { base, command, visit }) => {
  await command({ game: 'pong', page: 'play' });
  for (const path of Object.values(PAGES)) {
    const page = await visit(path, 'tall');
    if (path === PAGES.phone) await says(page, '#state', 'It begins soon');
    if (path === PAGES.panel) {
      await unlock(page, 'wrong');
      await says(page, '#token-wrong', 'not one of the server');
      t.strictSame(await amissTo(page), [], 'the panel, locked');
      await unlock(page);
    }
    for (const running of [false, true]) {
      await command({ running, page: running ? 'play' : 'lobby' });
      if (path !== PAGES.panel) await shows(page, running ? 'play' : 'lobby');
      if (path !== PAGES.panel && running) await page.locator('#root > *').first().waitFor();
      for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme: size === 'wide' ? 'dark' : 'light' });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        t.ok(wide <= 0, `${path} ${size}: ${wide} px too wide`);
        if (path === PAGES.panel) continue;
        t.strictSame(await amiss(page), [], `${path} ${size} ${running}`);
      }
    }
    t.strictSame(await amissTo(page), [], path);
    // Chromium's accessibility tree, as for screen readers: every control has a name.
    const tree = await page.locator('body').ariaSnapshot();
    t.match(tree, /- (button|slider) "/, path);
    t.notMatch(tree, /- (button|slider|textbox|link|img|checkbox)(:| \[|$)/m, path);
    t.notMatch(tree, '"Stop" [pressed]', 'what it does is no state');
    if (path === PAGES.field) {
      t.equal(await page.locator('#code[data-url]').getAttribute('data-url'), `${base}play/hall`);
    }
    await page.context().close();
  }
});

/** A game that throws on phone or field in the first round. */
const BREAKS = `export const start = ({ root }) => ({
  value({ round }) {
    if (round === 1) null.x;
    root.textContent = 'round ' + round;
  },
  stop() {}
});`;

t.test('a game that breaks is said on its page, and on the panel', { skip }, async (t) => {
  const broken = {
    ...MIRROR,
    ...{ 'phone.js': BREAKS, 'field.js': BREAKS },
    'panel.js': `export function start({ root, slider }) { slider(root, 'seconds'); return { stop() {} }; }`,
    'reduce.js': `export function reduce({ round, time }) {
      if (round === 1 && time > 300) throw new Error("no more");
      return { time };
    }`
  };
  const async = {
    ...MIRROR,
    'phone.js': 'export const start = async () => ({ stop() {} });',
    'field.js': 'export const start = ({ root }) => void root.append("Hello");'
  };
  const { command, visit } = await room(t, { games: { broken, async } });
  const panel = await unlocked(visit);
  const pages = [await visit(PAGES.phone), await visit(PAGES.field, 'big')];
  await command({ game: 'broken', running: true });
  await says(panel, '#failed', 'Mirror was stopped: its reducer threw. no more (reduce.js:2)');
  for (const page of pages) await says(page, '#about', "broken can't be shown here");
  t.match(browser.complaints.splice(0), [/null/, /null/]);
  await command({ running: true });
  for (const page of pages) await says(page, '#root', 'round 2');
  await panel.locator('#failed').waitFor({ state: 'hidden' });
  await says(panel, '#own output', '60');
  await command({ settings: { seconds: 30 } });
  await says(panel, '#own output', '30');
  await command({ game: 'async', running: true });
  for (const page of pages) await says(page, '#about', 'start must return the game at once');
  t.match(browser.complaints.splice(0), [/at once/, /at once/]);
});

nothingElse();

/** Saves the README's pictures, with the environment variable PICTURES. */
if (process.env.PICTURES) {
  t.test('pictures for the README', { skip }, async (t) => {
    const { base, command, visit } = await room(t);
    await command({ game: 'pong', settings: { points: 21 }, rate: 4 });
    const colorScheme = 'light';
    const field = await visit(PAGES.field, 'big', { reducedMotion: 'no-preference', colorScheme });
    const panel = await visit(PAGES.panel, 'desk', { colorScheme });
    await unlock(panel);
    const phone = await visit(PAGES.phone, 'tall', { colorScheme });
    const join = async () => {
      const answer = await fetch(new URL('arena/hall', base), { method: 'POST' });
      return (await answer.json()).player;
    };
    const players = await Promise.all(Array.from({ length: 211 }, join));
    const play = setInterval(() => {
      for (const player of players) {
        const body = JSON.stringify({ y: 0.35 + Math.random() * 0.4 });
        fetch(new URL(`arena/hall/${player}`, base), { method: 'POST', body }).catch(() => {});
      }
    }, 500);
    t.teardown(() => clearInterval(play));
    await says(field, '#count', '212');
    await command({ running: true });
    await shows(phone, 'play');
    await drag(phone, { x: 180, y: 400 }, { x: 180, y: 260 }, { finger: true });
    await field.waitForFunction(() => {
      const [x] = (document.getElementById('root').dataset.ball ?? '8 4').split(' ').map(Number);
      const scored = document.querySelector('.pong-score b').textContent !== '0';
      if (!scored || x < 10.5 || x > 12) return false;
      globalThis.requestAnimationFrame = () => 0; // No movement in the picture.
      return true;
    });
    await save(field, 'arena-field');
    await save(phone, 'arena-phone');
    await save(panel, 'arena-panel', { fullPage: true });
  });
}

/** Saves a picture with 64 colors: the pages have no more. */
async function save(page, name, how = {}) {
  const file = `${PICTURES}${name}.png`;
  await page.screenshot({ path: file, timeout: 10_000, ...how });
  await tool('convert', [file, '+dither', '-strip', '-colors', '64', `png8:${file}`]);
}
