/**
 * Primus over ws: `primus.write` of the document to all.
 *
 *     node test/bench/transports/primus.js
 */
import { createServer } from 'node:http';

import Primus from 'primus';

import { listen, publications } from '../contenders/publications.js';

const server = createServer(
  publications((document) => {
    primus.write(JSON.parse(document));
  })
);
const primus = new Primus(server, { transformer: 'websockets' });

listen(server);
