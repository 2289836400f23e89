import { EventEmitter, once } from 'node:events';

import { createServer } from 'sprites-server';
import { Client } from 'sprites-server/client';

/**
 * A server within another program, and two clients that throw one sprite around the torus ten times.
 *
 *     node lib/examples/embedded.js
 */

const THROWS = 10;

const server = await createServer({ port: 0, host: '127.0.0.1' });
const base = server.addresses[0];

let caught = 0;
const game = new EventEmitter();

/** Starts a client that throws each caught sprite on. */
function player(name) {
  const client = new Client({
    base,
    onSprite(sprite, { from }) {
      caught += 1;
      console.log(`${name} caught the ${sprite.picture} from the ${from}`);
      if (caught === THROWS) game.emit('over');
      else client.throw('right', sprite).catch((error) => game.emit('error', error));
    }
  });
  client.start();
  return client;
}

const isOver = once(game, 'over');
const players = [player('Ann'), player('Bob')];
await players[0].throw('right', { id: 'one', picture: 'star', at: 0.5, speed: [1, 0] });
await isOver;
await Promise.all(players.map((client) => client.leave()));
const { thrown, acked, lost } = server.status();
console.log(`thrown ${thrown}, acknowledged ${acked}, lost ${lost}`);
await server.close();
