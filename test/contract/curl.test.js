import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import t from 'tap';

import { contract } from '../support/server.js';
import { temporary } from '../support/processes.js';

const run = promisify(execFile);

/** curl as a person types it; gives the body and the status. */
async function curl(...args) {
  const { stdout } = await run('curl', ['-sS', '-w', '\n%{http_code}', ...args]);
  const end = stdout.lastIndexOf('\n');
  const text = stdout.slice(0, end);
  return {
    status: Number(stdout.slice(end + 1)),
    body: text === '' ? undefined : JSON.parse(text)
  };
}

contract(t, {}, (t, server) => {
  const base = `http://127.0.0.1:${server.port}`;
  const directory = temporary(t);

  t.test('curl joins, throws, polls, acks and leaves', async (t) => {
    const {
      status,
      body: { id }
    } = await curl('-X', 'POST', `${base}/join`);
    t.equal(status, 201);
    const poll = curl(`${base}/poll/${id}`);
    await server.until(({ parked }) => parked === 1);
    t.strictSame(await curl('-d', '{"kind":"ball"}', `${base}/throw/${id}/left?n=1`), {
      status: 202,
      body: { state: 'delivered' }
    });
    t.strictSame((await poll).body, {
      seq: 1,
      sprites: [{ seq: 1, from: 'right', sprite: { kind: 'ball' } }]
    });
    t.strictSame(await curl('-d', '{"kind":"ball"}', `${base}/throw/${id}/left?n=1`), {
      status: 202,
      body: { state: 'duplicate' }
    });
    const parked = curl(`${base}/poll/${id}?ack=1&hold=60`);
    await server.until((counts) => counts.parked === 1 && counts.waiting === 0);
    t.strictSame(await curl('-X', 'POST', `${base}/leave/${id}`), { status: 204, body: undefined });
    t.strictSame((await parked).body, { seq: 1, sprites: [] });
    t.equal((await curl(`${base}/poll/${id}`)).body.type, 'urn:sprites:unknown-client');
  });

  t.test('curl with chunks, with Expect, with HTTP/1.0, with a request for HTTP/2', async (t) => {
    const id = await server.join();
    const to = `${base}/throw/${id}/up`;
    for (const args of [
      ['-H', 'Transfer-Encoding: chunked', '-d', '{"a":1}'],
      ['-H', 'Expect: 100-continue', '-d', '{"a":1}'],
      ['--http1.0', '-d', '{"a":1}'],
      ['--http2', '-d', '{"a":1}'],
      ['--compressed', '-d', '{"a":1}'],
      ['-H', 'Content-Type: text/plain', '-d', '{"a":1}'],
      ['-H', 'Host:sprites.example:80', '-d', '{"a":1}'],
      ['--request-target', `http://sprites.example/throw/${id}/up`, '-d', '{"a":1}']
    ]) {
      t.equal((await curl(...args, to)).status, 202, args.join(' '));
    }
    t.equal((await curl(`${base}/poll/${id}`)).body.sprites.length, 8);
  });

  t.test('curl uploads files: small, and too large however it sends them', async (t) => {
    const id = await server.join();
    const file = (name, size) => {
      const path = join(directory, name);
      writeFileSync(path, JSON.stringify({ x: '.'.repeat(size) }));
      return `@${path}`;
    };
    const to = `${base}/throw/${id}/up`;
    t.equal((await curl('--data-binary', file('small', 10000), to)).status, 202);
    const large = [file('large', 20000), file('larger', 2000000)];
    for (const data of large) {
      for (const more of [[], ['-H', 'Expect:'], ['-H', 'Transfer-Encoding: chunked']]) {
        const { status, body } = await curl(...more, '--data-binary', data, to);
        t.equal(status, 413, more.join(' '));
        t.equal(body.type, 'urn:sprites:sprite-too-large');
      }
    }
  });

  t.test('curl uses one connection for many requests', async (t) => {
    const id = await server.join();
    const { stdout } = await run('curl', [
      ...['-sS', '-w', '%{num_connects}\n', '-o', '/dev/null', `${base}/status`],
      ...['-o', '/dev/null', `${base}/place/${id}`],
      ...['-o', '/dev/null', '-X', 'GET', `${base}/status`]
    ]);
    t.strictSame(stdout.trim().split('\n'), ['1', '0', '0']);
  });
});
