/* global document */
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import t from 'tap';

import { listening } from '../support/addresses.js';
import { put, remove, tokenFile } from '../support/feeds.js';
import { launchBrowser, noBrowser } from '../support/page-browser.js';
import { ROOT, startServer } from '../support/server.js';

/** The hook for React, with React itself, in a page. */

const require = createRequire(import.meta.url);

/** React 18 is a script. This module for the hook's import exports the script's globals. */
const REACT = 'export const { useMemo, useSyncExternalStore } = globalThis.React;';

const page = (port) => `<!doctype html><title>A hook</title><div id="root"></div>
  <script src="/react.js"></script><script src="/react-dom.js"></script>
  <script type="importmap">{"imports":{"react":"/react.mjs"}}</script>
  <script type="module">
    import { useFeed } from '/client/react.js';
    const { createElement, StrictMode, useState } = React;
    const base = 'http://127.0.0.1:${port}';
    function Shown({ feed }) {
      const { value, problem } = useFeed(feed, { base });
      return createElement('p', null, feed + ': ' + (problem ?? JSON.stringify(value)));
    }
    function App() {
      const [feeds, setFeeds] = useState(['a', 'a', 'b']);
      globalThis.show = setFeeds;
      return feeds.map((feed, at) => createElement(Shown, { feed, key: at }));
    }
    const root = ReactDOM.createRoot(document.getElementById('root'));
    root.render(createElement(StrictMode, null, createElement(App)));
  </script>`;

async function serve(t, port) {
  const files = { '/react.js': 'react', '/react-dom.js': 'react-dom' };
  const site = http.createServer(({ url }, response) => {
    const name = files[url];
    const umd = name && join(dirname(require.resolve(name)), `umd/${name}.development.js`);
    const file = umd ?? join(ROOT, 'lib', url);
    response.setHeader('Content-Type', url === '/' ? 'text/html' : 'text/javascript');
    if (url === '/') response.end(page(port));
    else if (url === '/react.mjs') response.end(REACT);
    else if (existsSync(file)) response.end(readFileSync(file));
    else response.writeHead(404).end();
  });
  return `http://127.0.0.1:${await listening(t, site)}/`;
}

t.test('a component has the newest value of its feed', { skip: noBrowser() }, async (t) => {
  const server = await startServer(t, { options: { 'publish-token-file': tokenFile(t) } });
  await put(server, 'a', 1);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const tab = await browser.newPage();
  const faults = [];
  tab.on('pageerror', (error) => faults.push(error.message));
  tab.on('console', (said) => said.type() === 'error' && faults.push(said.text()));
  await tab.goto(await serve(t, server.port));
  const shows = (...lines) =>
    tab.waitForFunction(
      (text) => [...document.querySelectorAll('p')].map((p) => p.textContent).join('; ') === text,
      lines.join('; ')
    );
  await shows('a: 1', 'a: 1', 'b: undefined');
  await server.until(({ watching }) => watching === 2);
  await put(server, 'a', 2);
  await put(server, 'b', { first: true });
  await shows('a: 2', 'a: 2', 'b: {"first":true}');
  await remove(server, 'a');
  await shows('a: unknown-feed', 'a: unknown-feed', 'b: {"first":true}');
  await put(server, 'a', 3);
  await tab.evaluate(() => globalThis.show(['b', 'a']));
  await shows('b: {"first":true}', 'a: 3');
  await server.until(({ watching }) => watching === 2);
  await tab.evaluate(() => globalThis.show([]));
  await server.until(({ watching }) => watching === 0);
  t.strictSame(faults, []);
  await server.stop();
});

t.test('before the first value, and on a server, there is none', async (t) => {
  const React = require('react');
  const { renderToString } = require('react-dom/server');
  const { useFeed } = await import('../../lib/client/react.js');
  const Shown = () => String(useFeed('a', { base: 'http://127.0.0.1:1' }).value);
  t.equal(renderToString(React.createElement(Shown)), 'undefined');
  t.throws(() => renderToString(React.createElement(() => useFeed('a').value)), /Invalid URL/);
  t.throws(
    () => renderToString(React.createElement(() => useFeed('a', null).value)),
    /Invalid URL/
  );
});
