import { BENCH, LEAGUE, LINES, TEAMS } from './squads.js';

/**
 * A football match that plays itself: the same one from the same seed. Its value is what a match
 * centre shows, some 40 kB of JSON: players with their numbers and ratings, events, the table.
 *
 *     const match = new Match(1);
 *     while (!match.isOver) { match.step(); publish(match.value); }
 */

/** Steps of a match, and what one of them takes. */
export const STEPS = 300;
const SECONDS = 18;

const BASE = 6.4; // the rating to begin with
const EVENTS = 120; // the oldest go

/** What is counted of a player. */
const NUMBERS =
  'touches,passes,passesCompleted,longBalls,crosses,dribbles,dribblesWon,shots,shotsOnTarget,goals,assists,keyPasses,tackles,interceptions,clearances,duels,duelsWon,aerials,fouls,fouled,offsides,saves,yellow,red,metres,sprints,topSpeed'.split(
    ','
  );

/** What is counted of a team. */
const TOTALS =
  'possession,shots,shotsOnTarget,corners,fouls,offsides,yellow,passes,accuracy,expectedGoals'.split(
    ','
  );

/** Numbers in [0, 1) that can be had again from their seed (mulberry32). */
function numbersFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

const zeros = (names) => Object.fromEntries(names.map((name) => [name, 0]));
const round = (number, digits = 1) => Number(number.toFixed(digits));
const within = (number, least, most) => Math.max(least, Math.min(most, number));

export class Match {
  #random;
  #step = 0;
  #events = 0; // so far
  #with = 'home'; // the ball
  #carrier = 9;

  /** @param {number} seed a whole number */
  constructor(seed) {
    this.#random = numbersFrom(seed);
    const [home, away] = TEAMS.map((team) => this.#team(team));
    this.value = {
      id: `match-${seed}`,
      competition: 'Coastal League, round 8',
      venue: { name: 'Harbour Ground', city: 'Harbour', attendance: 18204 + (seed % 900) },
      referee: 'P. Lindqvist',
      period: 'first half',
      clock: { minute: 0, second: 0 },
      score: { home: 0, away: 0 },
      ball: { x: 50, y: 50 },
      teams: { home, away },
      momentum: [],
      events: [],
      table: this.#table()
    };
    this.#tell('whistle', null, null, 'Kick-off.');
  }

  /** @returns {boolean} whether the final whistle has gone */
  get isOver() {
    return this.#step >= STEPS;
  }

  /** Plays on for a few seconds of the match. */
  step() {
    if (this.isOver) return;
    this.#step += 1;
    const { value } = this;
    const seconds = this.#step * SECONDS;
    value.clock = { minute: Math.floor(seconds / 60), second: seconds % 60 };
    const passes = 2 + this.#below(4);
    for (let n = 0; n < passes; n += 1) this.#pass();
    if (this.#isOneIn(3)) this.#duel();
    if (this.#isOneIn(7)) this.#shot();
    if (this.#isOneIn(14)) this.#foul();
    if (this.#isOneIn(40)) this.#offside();
    if (value.clock.minute >= 55 && this.#isOneIn(14)) this.#substitution();
    this.#run();
    this.#count();
    if (this.#step === STEPS / 2) this.#whistle('second half', 'Half-time.');
    if (this.#step === STEPS) this.#whistle('full time', 'Full-time.');
  }

  // ---- who there is

  #team({ players, ...team }) {
    const names = players.split(' ');
    const squad = [...LINES, ...BENCH.map((position) => [position, 0, 0])];
    return {
      ...team,
      formation: '4-3-3',
      totals: zeros(TOTALS),
      players: squad.map(([position, x, y], at) => ({
        id: `${team.id}-${at + 1}`,
        number: at === 0 ? 1 : at + 2 + (at > 10 ? 3 : 0),
        name: names[at],
        position,
        on: at < 11,
        place: { x, y },
        born: `${1988 + this.#below(18)}-0${1 + this.#below(9)}-${10 + this.#below(18)}`,
        height: 168 + this.#below(30),
        foot: this.#isOneIn(4) ? 'left' : 'right',
        form: Array.from({ length: 5 }, () => this.#earlier()),
        rating: BASE,
        numbers: zeros(NUMBERS)
      }))
    };
  }

  /** A match that a player has behind him. */
  #earlier() {
    const against = LEAGUE[this.#below(LEAGUE.length)];
    return { against, minutes: 20 + this.#below(71), rating: round(5.5 + this.#random() * 3) };
  }

  #table() {
    const names = [...TEAMS.map(({ name }) => name), ...LEAGUE];
    const rows = names.map((name) => {
      const won = this.#below(6);
      const drawn = this.#below(8 - won);
      const scored = won * 2 + drawn + this.#below(4);
      const conceded = scored + 5 - won * 2 + this.#below(4);
      const lost = 7 - won - drawn;
      return { name, played: 7, won, drawn, lost, scored, conceded, points: won * 3 + drawn };
    });
    return rows.sort((a, b) => b.points - a.points || b.scored - a.scored);
  }

  // ---- what happens

  #below(bound) {
    return Math.floor(this.#random() * bound);
  }

  #isOneIn(times) {
    return this.#below(times) === 0;
  }

  #side(side) {
    return this.value.teams[side];
  }

  get #other() {
    return this.#with === 'home' ? 'away' : 'home';
  }

  /** One who is on the pitch; the goalkeeper less often. */
  #anyOf(side) {
    const on = this.#side(side).players.filter((player) => player.on);
    return on[this.#isOneIn(12) ? 0 : 1 + this.#below(on.length - 1)];
  }

  /** Counts for a player, and for what he is worth. */
  #note(player, numbers, worth = 0) {
    for (const name of numbers) player.numbers[name] += 1;
    if (worth !== 0) player.rating = round(within(player.rating + worth, 3, 10));
  }

  #tell(type, side, player, text) {
    this.#events += 1;
    const { clock, score, events } = this.value;
    const event = { id: this.#events, type, minute: clock.minute, text };
    if (side) Object.assign(event, { team: side, player: player.id });
    if (type === 'goal') event.score = { ...score };
    events.unshift(event);
    events.length = Math.min(events.length, EVENTS);
  }

  #pass() {
    const passer = this.#side(this.#with).players.filter(({ on }) => on)[this.#carrier];
    const isGood = this.#random() < 0.84;
    this.#note(passer, ['touches', 'passes', ...(isGood ? ['passesCompleted'] : [])]);
    if (this.#isOneIn(10)) this.#note(passer, ['longBalls']);
    if (!isGood) {
      this.#note(
        this.#anyOf(this.#other),
        ['touches', 'interceptions'],
        this.#isOneIn(4) ? 0.1 : 0
      );
      this.#with = this.#other;
    }
    this.#carrier = this.#below(11);
  }

  #duel() {
    const [attacker, defender] = [this.#anyOf(this.#with), this.#anyOf(this.#other)];
    const isWon = this.#isOneIn(2);
    this.#note(attacker, ['duels', 'dribbles', ...(isWon ? ['duelsWon', 'dribblesWon'] : [])]);
    this.#note(defender, ['duels', 'tackles', ...(isWon ? [] : ['duelsWon'])], isWon ? 0 : 0.1);
  }

  #shot() {
    const side = this.#with;
    const shooter = this.#side(side).players.filter(({ on }) => on)[5 + this.#below(6)];
    const maker = this.#anyOf(side);
    const keeper = this.#side(this.#other).players.find(({ on }) => on);
    const chance = 0.03 + this.#random() ** 3 * 0.4;
    const { totals } = this.#side(side);
    totals.expectedGoals = round(totals.expectedGoals + chance, 2);
    if (maker !== shooter) this.#note(maker, ['keyPasses']);
    this.value.ball = { x: side === 'home' ? 94 : 6, y: 40 + this.#below(20) };
    if (this.#random() < chance * 1.1) return this.#goal(side, shooter, maker, keeper);
    if (this.#isOneIn(2)) {
      this.#note(shooter, ['touches', 'shots', 'shotsOnTarget'], 0.1);
      this.#note(keeper, ['saves'], 0.2);
      this.#tell('save', side, shooter, `${keeper.name} saves from ${shooter.name}.`);
      totals.corners += 1;
    } else {
      this.#note(shooter, ['touches', 'shots'], -0.1);
      const how = ['wide', 'over the bar', 'against the post', 'into the wall'][this.#below(4)];
      this.#tell('shot', side, shooter, `${shooter.name} shoots ${how}.`);
    }
    this.#with = this.#other;
    return undefined;
  }

  #goal(side, shooter, maker, keeper) {
    const { score } = this.value;
    score[side] += 1;
    this.#note(shooter, ['touches', 'shots', 'shotsOnTarget', 'goals'], 1.1);
    this.#note(keeper, [], -0.4);
    const helped = maker === shooter ? 'on his own' : `set up by ${maker.name}`;
    if (maker !== shooter) this.#note(maker, ['assists'], 0.7);
    const standing = `${score.home}–${score.away}`;
    this.#tell('goal', side, shooter, `Goal! ${shooter.name}, ${helped}. ${standing}.`);
    this.#with = this.#other;
    this.value.ball = { x: 50, y: 50 };
  }

  #foul() {
    const [by, on] = [this.#anyOf(this.#other), this.#anyOf(this.#with)];
    this.#note(by, ['fouls'], -0.1);
    this.#note(on, ['fouled']);
    if (by.numbers.yellow === 0 && this.#isOneIn(3)) {
      this.#note(by, ['yellow'], -0.3);
      this.#tell('yellow', this.#other, by, `${by.name} is booked for a foul on ${on.name}.`);
    } else {
      this.#tell('foul', this.#other, by, `${by.name} fouls ${on.name}.`);
    }
  }

  #offside() {
    const player = this.#anyOf(this.#with);
    this.#note(player, ['offsides']);
    this.#tell('offside', this.#with, player, `${player.name} is offside.`);
    this.#with = this.#other;
  }

  #substitution() {
    const side = this.#isOneIn(2) ? 'home' : 'away';
    const { players } = this.#side(side);
    const fresh = players.findIndex(({ on, numbers }, at) => at > 11 && !on && !numbers.metres);
    const gone = players.findIndex((player, at) => at > 3 && at < 11 && player.on);
    if (fresh < 0 || gone < 0 || players.filter(({ on }) => !on).length < 5) return;
    const [into, out] = [players[fresh], players[gone]];
    into.on = true;
    out.on = false;
    into.place = { ...out.place };
    into.numbers.metres = 1;
    this.#tell('substitution', side, into, `${into.name} comes on for ${out.name}.`);
  }

  /** A few run; the ball is near one of them. */
  #run() {
    const { value } = this;
    for (const side of ['home', 'away']) {
      const push = side === this.#with ? 3 : -2;
      for (let n = 0; n < 3; n += 1) {
        const player = this.#anyOf(side);
        const { place, numbers } = player;
        numbers.metres += 20 + this.#below(60);
        if (player.position === 'GK') continue;
        place.x = within(place.x + push + this.#below(7) - 3, 8, 92);
        place.y = within(place.y + this.#below(9) - 4, 6, 94);
        if (this.#isOneIn(6)) numbers.sprints += 1;
        numbers.topSpeed = Math.max(numbers.topSpeed, round(22 + this.#random() * 12));
      }
    }
    const { place } = this.#side(this.#with).players.filter(({ on }) => on)[this.#carrier];
    value.ball = { x: this.#with === 'home' ? place.x : 100 - place.x, y: place.y };
  }

  /** What the teams' numbers come to. */
  #count() {
    const { value } = this;
    const passes = { home: 0, away: 0 };
    for (const side of ['home', 'away']) {
      const { totals, players } = this.#side(side);
      const sum = (name) => players.reduce((all, { numbers }) => all + numbers[name], 0);
      for (const name of ['shots', 'shotsOnTarget', 'fouls', 'offsides', 'yellow', 'passes']) {
        totals[name] = sum(name);
      }
      passes[side] = totals.passes;
      totals.accuracy = Math.round((100 * sum('passesCompleted')) / Math.max(1, totals.passes));
    }
    const share = Math.round((100 * passes.home) / Math.max(1, passes.home + passes.away));
    this.#side('home').totals.possession = share;
    this.#side('away').totals.possession = 100 - share;
    const { clock, momentum } = value;
    if (momentum.length <= clock.minute && clock.minute > 0) {
      momentum.push(round((value.ball.x - 50) / 5 + this.#random() * 6 - 3));
    }
  }

  #whistle(period, text) {
    this.value.period = period;
    this.value.ball = { x: 50, y: 50 };
    this.#tell('whistle', null, null, text);
  }
}
