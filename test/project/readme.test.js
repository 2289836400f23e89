import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import t from 'tap';

import { problems } from '../../lib/http/problems.js';
import { countTable } from '../../lib/operator/counts.js';
import { generatedFiles } from '../../lib/operator/tables.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { documentAt, shown } from '../support/documents.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

const readme = documentAt('README.md');

/** Paths of all documents. */
const DOCUMENTS = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n');

/** Returns the anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (path) =>
  [...documentAt(path).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-')
  );

t.test('what is made of a table of the code is as the table is', async (t) => {
  for (const [path, text] of generatedFiles(documentAt)) t.equal(documentAt(path), text, path);
});

t.test('a problem that a document names has the status that it says', async (t) => {
  let seen = 0;
  for (const path of DOCUMENTS) {
    for (const [text, status, name] of documentAt(path).matchAll(
      /\b([45]\d\d)\s`([a-z]+(?:-[a-z]+)*)`/g
    )) {
      t.equal(problems[name]?.status, Number(status), `${path}: ${text}`);
      seen += 1;
    }
  }
  t.ok(seen > 50, `${seen} were seen`);
});

t.test('a problem that a proxy answers in place of a server is one of its own', async (t) => {
  const answered = ['deploy/nginx.conf', 'deploy/world/haproxy.cfg'].flatMap((path) => [
    ...documentAt(path).matchAll(/urn:sprites:([a-z-]+).*?status\\?":(\d+)/g)
  ]);
  t.equal(answered.length, 2);
  for (const [, name, status] of answered) t.equal(problems[name]?.status, Number(status), name);
});

t.test('the live counts are those of the table, every one, and nothing else is', async (t) => {
  const namesOf = (some) => some.map(({ name }) => name).toSorted();
  const all = namesOf(countTable);
  const servers = {
    'without workers': {},
    'with workers': { options: { workers: 1, 'transient-port': 0 } }
  };
  for (const [name, how] of Object.entries(servers)) {
    const server = await startServer(t, how);
    await server.poll('nobody');
    await server.join();
    await server.leave(await server.join());
    // A worker reports its own refusals within a second.
    await server.until(({ refused }) => 'unknown-client' in refused);
    const status = await server.adminStatus();
    t.strictSame(Object.keys(status).toSorted(), all, name);
    const { body } = await server.ask('GET', '/status');
    const operators = namesOf(countTable.filter(({ marks }) => marks.has('operators')));
    const publicNames = all.filter((member) => !operators.includes(member));
    t.strictSame(Object.keys(body).toSorted(), publicNames, `${name}, public`);
    for (const member of ['rss', 'heapUsed', 'longestStallMs', 'refused']) t.notOk(member in body);
    t.strictSame(Object.keys(status.lostReasons), ['alone'], 'reasons of lost');
    t.strictSame(status.refused, { 'unknown-client': 1 });
    const { joined, clients, left, expired } = status;
    t.equal(joined, clients + left + expired);
    await server.stop();
  }
});

t.test('the session with curl shows a throw arriving, and can be repeated at once', async (t) => {
  const [example] = /^ {4}A=\$\(curl[^]*?(?=\n\n)/m.exec(readme);
  const server = await startServer(t);
  const session = example.replaceAll('localhost:8080', `127.0.0.1:${server.port}`);
  // A second may be too short on a busy machine: here the throw waits until the poll is parked.
  t.match(session, '& sleep 1\n');
  const status = `127.0.0.1:${server.port}/status`;
  const parked = `until curl -s ${status} | grep -q '"parked":1,'; do sleep 0.05; done`;
  const script = session.replace('sleep 1', parked);
  for (const time of ['first', 'second']) {
    const { stdout } = await promisify(execFile)('bash', ['-c', script]);
    t.match(stdout, '{"state":"delivered"}', time);
    t.match(stdout, '{"seq":1,"sprites":[{"seq":1,"from":"right","sprite":{"hello":"neighbor"}}]}');
    const { clients, waiting } = await server.status();
    t.strictSame(
      { clients, waiting },
      { clients: 0, waiting: 0 },
      'no client and no sprite is left'
    );
  }
  // The session also ends on a server with other clients.
  await server.park(await server.join());
  const { stdout } = await promisify(execFile)('timeout', ['30', 'bash', '-c', session]);
  t.match(stdout, /"state":"(delivered|queued)"/);
  t.equal((await server.status()).clients, 1);
});

t.test('what the README publishes can be asked for', async (t) => {
  const [write, start] = shown('README.md', 'Publish a document').trim().split('\n');
  t.equal(start, 'npm start -- --publish-token-file tokens');
  const folder = t.testdir();
  await promisify(execFile)('bash', ['-c', write], { cwd: folder });
  const options = { 'publish-token-file': join(folder, 'tokens') };
  const server = await startServer(t, { options });
  const [publish, ask] = shown('README.md', `${start}\n`)
    .replaceAll('localhost:8080', `127.0.0.1:${server.port}`)
    .trim()
    .split('\n');
  t.match((await promisify(execFile)('bash', ['-c', publish])).stdout, '"cursor"');
  t.match((await promisify(execFile)('bash', ['-c', ask])).stdout, '"value":{"first":"Ada"}');
});

t.test('the module of the protocol throws a sprite and catches it', async (t) => {
  const server = await startServer(t);
  const script = shown('lib/client/README.md', 'Save this in the checkout as `hello.mjs`');
  t.match(script, 'console.log(thrown, state); // true delivered');
  const base = `http://127.0.0.1:${server.port}`;
  const file = join(t.testdir(), 'hello.mjs'); // in the checkout, as the README says
  writeFileSync(file, script.replace('http://127.0.0.1:8080', base));
  const { stdout } = await promisify(execFile)(process.execPath, [file], {
    env: plainEnvironment(),
    timeout: 60_000
  });
  // The throw is queued if it comes before the poll, which has another connection.
  const outputLines = stdout.trim().replace('true queued', 'true delivered').split('\n');
  t.same(outputLines.sort(), ['star right', 'true delivered']);
});

t.test('the module of feeds follows what is published', async (t) => {
  const folder = t.testdir({ tokens: 'a-token-of-the-readme\n', token: '' });
  writeFileSync(join(folder, 'token'), 'Authorization: Bearer a-token-of-the-readme');
  const server = await startServer(t, {
    options: { 'publish-token-file': join(folder, 'tokens') }
  });
  const document = 'lib/client/README.md';
  const program = shown(document, 'With `watch.mjs` as');
  const file = join(folder, 'watch.mjs');
  writeFileSync(file, program.replace('http://127.0.0.1:8080', `http://127.0.0.1:${server.port}`));
  const watching = spawn(process.execPath, [file], { env: plainEnvironment() });
  t.teardown(() => watching.kill('SIGKILL'));
  const ended = once(watching, 'close');
  const lines = [];
  createInterface({ input: watching.stdout }).on('line', (line) => lines.push(line));
  const errors = [];
  watching.stderr.on('data', (chunk) => errors.push(chunk));
  const [define, ...puts] = shown(document, 'a client with a token publishes')
    .replaceAll('localhost:8080', `127.0.0.1:${server.port}`)
    .trim()
    .split('\n');
  await server.until(({ watching }) => watching === 1);
  const wanted = ['Ada whole', 'Grace 2 changes', 'Grace 1 changes'];
  for (const [at, put] of puts.entries()) {
    const script = `${define}\n${put}`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder });
    t.match(stdout, '"cursor"');
    await until(
      () => lines.length === at + 1,
      () => `${lines} ${errors}`
    );
  }
  t.same(lines, wanted);
  t.same(await ended, [0, null], 'the last watch is closed: nothing keeps it');
});

t.test('every file a document names is there, by code and by link', async (t) => {
  for (const path of DOCUMENTS) {
    const text = documentAt(path);
    const code = text.matchAll(/`((?:lib|native|test|deploy|bin)\/[\w./-]+)`/g);
    for (const [, name] of code) {
      if (name.includes('build/')) continue;
      t.ok(existsSync(join(ROOT, name)), `${path}: ${name}`);
    }
    for (const [, name, anchor] of text.matchAll(/\]\(([\w./-]*)(?:#([\w-]+))?\)/g)) {
      const target = name === '' ? path : join(dirname(path), name);
      t.ok(existsSync(join(ROOT, target)), `${path} links to ${name}`);
      if (anchor) t.ok(anchorsOf(target).includes(anchor), `${path} links to ${name}#${anchor}`);
    }
  }
});

t.test('the README is a page, and its figures are those of test/README.md', async (t) => {
  t.ok(readme.split('\n').length <= 121, 'at most 120 lines');
  const figures = documentAt('test/README.md');
  const [chapter] = /^## Figures$[^]*?^## /m.exec(readme);
  const numbers = chapter.match(/\b\d[\d,]*(\.\d+)?\b/g);
  t.ok(numbers.length > 10, 'there is a table');
  for (const number of new Set(numbers)) t.ok(figures.includes(number), number);
});
