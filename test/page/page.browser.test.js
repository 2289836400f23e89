/* global document */
import t from 'tap';
import {
  browserRig,
  drag,
  holds,
  hurl,
  look,
  memory,
  online,
  place,
  reads,
  resting,
  soon,
  until
} from '../support/page-browser.js';

/** Pages that throw: to each other, to themselves, and to a server that is down. */

const { alone, beside, clients, nothingElse } = browserRig(t);

alone('a page alone says so, and catches what it throws', async (t, { server, page }) => {
  await page.waitForFunction(() => document.getElementById('count').textContent === '1');
  t.match(await page.textContent('#state'), /Only you/);
  t.match(await page.title(), /^1 /);
  t.same(await place(page), [0, 0, 1, 1]);
  const [sprite] = (await look(page)).list;
  for (const [i, edge] of ['left', 'right', 'up', 'down'].entries()) {
    const [{ x, y }] = (await look(page)).list;
    await hurl(page, { x, y }, edge);
    await until(page, 'caught', i + 1);
    await holds(page, 1);
    t.equal((await look(page)).list[0].id, sprite.id, `by the ${edge} edge and in again`);
    await resting(page);
  }
  const counts = await server.status();
  t.equal(counts.thrown, counts.acked + counts.waiting + counts.lost);
  t.ok(counts.thrown >= 4);
});

alone('dragged to an edge or past it, it is thrown', { others: 11 }, async (t, { page }) => {
  const { width, height } = await page.locator('#stage').boundingBox();
  let thrown = 0;
  for (const [how, x, y] of [
    ['to the upper edge', 400, 0],
    ['past the lower edge beside the tray', width - 10, height + 40],
    ['past the left edge, out of the window', -40, 300]
  ]) {
    if ((await look(page)).sprites === 0) await page.locator('.pick').first().click();
    await resting(page);
    const from = (await look(page)).list.at(-1);
    await drag(page, from, { x, y }, { still: 400 });
    thrown += 1;
    await until(page, 'thrown', thrown);
    t.pass(how);
  }
  await holds(page, 0);

  // A sprite that was never over the desktop is put away.
  const box = await page.locator('.pick').nth(1).boundingBox();
  const from = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await drag(page, from, { x: width - 10, y: from.y }, { still: 400 });
  await reads(page, '#toast', 'You put away the ');
  t.match(await look(page), { sprites: 0, thrown });
});

alone('it enters opposite, at the same height and as fast', async (t, { server, page }) => {
  const seen = [];
  const {
    client,
    rows,
    edge: back,
    back: there
  } = await beside(server, page, (sprite, { from }) => seen.push({ ...sprite, from }));
  const { width, height } = await page.locator('#stage').boundingBox();
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, there);
  t.ok(await soon(async () => seen.length > 0));
  const share = rows === 1 ? sprite.y / height : sprite.x / width;
  t.ok(Math.abs(seen[0].at - share) < 0.05, `thrown at ${share}, seen at ${seen[0].at}`);
  t.ok(seen[0].speed[0] > 0.5 && Math.abs(seen[0].speed[1]) < 0.5, `as fast as ${seen[0].speed}`);
  t.equal(seen[0].from, back);

  // The other way: the sprite comes in at the position at which it was thrown.
  const thrown = { id: 'from-node', picture: 'ghost', at: 0.25, speed: [0.2, 0], name: 'Boo' };
  t.match(await client.throw(back, thrown), { thrown: true });
  await page.waitForFunction(() =>
    document.getElementById('stage').dataset.where.includes('from-node')
  );
  await resting(page);
  const found = (await look(page)).list.find(({ id }) => id === 'from-node');
  const at = rows === 1 ? found.y / height : found.x / width;
  t.ok(Math.abs(at - 0.25) < 0.01, `thrown at 0.25, found at ${at}`);
});

alone(
  'what the neighbor has no room for bounces',
  { args: ['--mailbox', '1'], others: 11 },
  async (t, { server, page }) => {
    const [first] = (await look(page)).list;
    await hurl(page, first, 'left');
    await until(page, 'thrown', 1);
    await holds(page, 0);
    await page.locator('.pick').first().click();
    await resting(page);
    await holds(page, 1);
    const [second] = (await look(page)).list;
    await hurl(page, second, 'left');
    await until(page, 'bounced', 1);
    await holds(page, 1);
    const seen = await look(page);
    t.equal(seen.list[0].id, second.id, 'it is still here');
    t.equal(seen.thrown, 1);
    t.match(await page.textContent('#toast'), /left neighbor has no room/);
    t.equal((await server.status()).thrown, 1);
  }
);

alone('an unanswered throw keeps its number', { others: 11 }, async (t, { server, page }) => {
  const numbers = new Set();
  let tries = 0;
  await page.route('**/throw/**', async (route) => {
    tries += 1;
    numbers.add(new URL(route.request().url()).search);
    // The first request arrives, and its answer is lost. The next four do not arrive.
    if (tries === 1)
      await fetch(route.request().url(), { method: 'POST', body: route.request().postData() });
    await (tries <= 5 ? route.abort('connectionreset') : route.continue());
  });
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'up');
  await until(page, 'flying', 1);
  await until(page, 'thrown', 1);
  await holds(page, 0);
  t.equal(numbers.size, 1, 'always by the same number');
  t.ok(tries > 5, `${tries} tries`);
  const counts = await server.status();
  t.equal(counts.thrown, 1);
  t.equal(counts.duplicates, 1);
});

alone('it comes back where the server dies', { others: 11 }, async (t, { server, page }) => {
  await page.route('**/throw/**', async (route) => {
    await server.stop('SIGKILL');
    await route.abort('connectionreset');
  });
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'up');
  await online(page, 'offline');
  t.equal((await look(page)).flying, 1, 'the outcome is unknown yet');
  await page.unroute('**/throw/**');
  await server.start();
  await holds(page, 1);
  t.equal((await look(page)).list[0].id, sprite.id);
});

const state = ['--state', `${t.testdir()}/state`];
alone('without a server edges are walls', { args: state }, async (t, { server, page }) => {
  const { id } = await memory(page, 'place');
  await resting(page);
  await server.stop();
  await online(page, 'offline');
  await reads(page, '#state', 'does not answer');
  await hurl(page, (await look(page)).list[0], 'left');
  await resting(page);
  await holds(page, 1);
  t.match(await look(page), { thrown: 0, bounced: 0 });
  await server.start();
  await online(page);
  await hurl(page, (await look(page)).list[0], 'left');
  await until(page, 'caught', 1);
  t.equal((await memory(page, 'place')).id, id);
  t.match(await server.status(), { clients: 1, thrown: 1 });
});

const transientPort = ['--workers', '1', '--transient-port', '0'];
alone(
  'it throws and leaves at the transient port',
  { args: transientPort },
  async (t, { server, page }) => {
    const { transient } = await memory(page, 'place');
    const asked = [];
    page.on('request', (request) => asked.push(new URL(request.url())));
    await resting(page);
    await hurl(page, (await look(page)).list[0], 'left');
    await until(page, 'caught', 1);
    const thrown = asked.filter(({ pathname }) => pathname.startsWith('/throw/'));
    t.same([...new Set(thrown.map(({ port }) => port))], [String(transient)]);
    await page.close({ runBeforeUnload: true });
    t.ok(await clients(server, 0));
  }
);

nothingElse();
