/**
 * The worm: mean and spread of the room's mood, as a line over time. When the line is full, each two points become one
 * point, which stands for twice the time.
 */

const POINTS = 400;

const hundredths = (value) => Math.round(value * 100);

/** @returns {{mean: number, spread: number}} mean, -1 to 1; standard deviation, 0 to 1 */
function moodOf({ players, inputs }) {
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < players; i += 1) {
    const mood = inputs.mood[i];
    sum += mood;
    squares += mood * mood;
  }
  const mean = players === 0 ? 0 : sum / players;
  const variance = players === 0 ? 0 : squares / players - mean * mean;
  return { mean, spread: Math.sqrt(Math.max(0, variance)) };
}

/** Halves the number of points: each new point stands for twice the time. */
function halve(memory) {
  const halved = (list) =>
    Array.from({ length: list.length / 2 }, (_, i) =>
      Math.round((list[2 * i] + list[2 * i + 1]) / 2)
    );
  memory.line = halved(memory.line);
  memory.band = halved(memory.band);
  memory.every *= 2;
}

/** See lib/arena/README.md. Moods in the value are hundredths, -100 to 100. */
export function reduce(now, memory) {
  if (memory.line === undefined) {
    Object.assign(memory, { line: [], band: [], every: now.settings.tenths * 100, next: 0 });
  }
  const { mean, spread } = moodOf(now);
  // After a long step, every point that is due gets the current mood.
  while (now.players > 0 && memory.next <= now.time) {
    memory.line.push(hundredths(mean));
    memory.band.push(hundredths(spread));
    if (memory.line.length >= POINTS) halve(memory);
    memory.next += memory.every;
    if (memory.next + POINTS * memory.every < now.time) memory.next = now.time;
  }
  if (now.players === 0) memory.next = now.time;
  return {
    mood: hundredths(mean),
    spread: hundredths(spread),
    every: memory.every,
    line: memory.line,
    band: memory.band
  };
}
