import { once } from 'node:events';
import http from 'node:http';

import { openSite } from './site.js';

/**
 * A football match, live. This program is a typical provider: an API that answers with the whole match. While a page
 * watches the match, Sprites fetches it once a second, compares it, and sends each page the patch.
 *
 *     node lib/examples/football.js
 */

const STEPS = 300; // steps of a match, each 18 s of play
const HOME = 'Aas Bianchi Castel Dube Eriksen Farkas Gallo Haddad Ibarra Jansen Kovač Lund';
const AWAY = 'Suzuki Tavares Ueda Varga Weiss Ximenes Yilmaz Zidek Amadi Brandt Costa Drummond';
const NUMBERS = 'passes arrived duels won shots goals fouls fouled';

/** Returns a random whole number from 0 to `bound` - 1. */
const randomBelow = (bound) => Math.floor(Math.random() * bound);

function newMatch() {
  const numbers = () => Object.fromEntries(NUMBERS.split(' ').map((number) => [number, 0]));
  const player = (name) => ({ name, rating: 6.4, numbers: numbers() });
  const team = (name, players) => ({ name, players: players.split(' ').map(player) });
  const teams = { home: team('Harbour Athletic', HOME), away: team('Union Falls', AWAY) };
  return { step: 0, clock: '0:00', score: { home: 0, away: 0 }, teams, events: [] };
}

/** Plays 18 random seconds of the match. */
function play(match) {
  match.step += 1;
  const seconds = match.step * 18;
  match.clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  const [side, other] = randomBelow(2) ? ['home', 'away'] : ['away', 'home'];
  const someone = (of) => match.teams[of].players[randomBelow(11)];
  const count = (player, worth, ...names) => {
    for (const name of names) player.numbers[name] += 1;
    player.rating = Math.min(10, Math.max(3, Math.round(10 * (player.rating + worth)) / 10));
  };
  const addEvent = (text) => match.events.unshift({ clock: match.clock, side, text });

  for (let n = randomBelow(5); n >= 0; n -= 1) count(someone(side), 0, 'passes', 'arrived');
  count(someone(side), -0.1, 'passes');
  count(someone(side), 0.1, 'duels', 'won');
  count(someone(other), 0, 'duels');
  const player = someone(side);
  if (randomBelow(70) === 0) {
    match.score[side] += 1;
    count(player, 1.1, 'shots', 'goals');
    addEvent(`Goal! ${player.name}. ${match.score.home}–${match.score.away}.`);
  } else if (randomBelow(8) === 0) {
    count(player, 0, 'shots');
    addEvent(`${player.name} shoots ${['wide', 'over the bar', 'into the wall'][randomBelow(3)]}.`);
  } else if (randomBelow(14) === 0) {
    const by = someone(other);
    count(player, 0, 'fouled');
    count(by, -0.1, 'fouls');
    addEvent(`${by.name} fouls ${player.name}.`);
  }
}

let match = newMatch();

const api = http.createServer((request, response) => response.end(JSON.stringify(match)));
api.listen(0, '127.0.0.1');
await once(api, 'listening');
const upstream = `http://127.0.0.1:${api.address().port}/{key}`;
await openSite(new URL('football.html', import.meta.url), {
  options: { upstream, upstreamEvery: 1 }
});
setInterval(() => {
  if (match.step === STEPS) match = newMatch();
  else play(match);
}, 1000);
