/**
 * Short sounds, synthesized by the browser: no file is loaded. They begin after the visitor's first action
 * on the page: before that a browser plays no sound.
 */

/** Sounds: pitches at begin and end, in Hz; time in seconds; largest gain. */
const SOUNDS = {
  take: { wave: 'sine', from: 420, to: 640, time: 0.09, gain: 0.05 },
  throw: { wave: 'triangle', from: 300, to: 900, time: 0.17, gain: 0.06 },
  catch: { wave: 'triangle', from: 720, to: 360, time: 0.15, gain: 0.06 },
  away: { wave: 'sine', from: 360, to: 160, time: 0.14, gain: 0.05 },
  bump: { wave: 'sine', from: 200, to: 120, time: 0.06, gain: 0.07 }
};
const MIN_INTERVAL = 0.07; // seconds between two sounds of one kind, at least: many bumps at once sound as one
const LOUDEST_BUMP = 300; // closing speed of the loudest bump, in CSS pixels a second

export class Sound {
  #isOn;
  #context = null;
  #lastPlayed = new Map();

  /** @param {() => boolean} isOn whether sounds are played */
  constructor(isOn) {
    this.#isOn = isOn;
  }

  /** Plays a bump. @param {number} strength closing speed, CSS pixels a second */
  bump(strength) {
    this.play('bump', Math.min(1, strength / LOUDEST_BUMP));
  }

  /**
   * Plays a sound.
   *
   * @param {keyof typeof SOUNDS} name
   * @param {number} [gainShare] of its largest gain
   */
  play(name, gainShare = 1) {
    if (!this.#isOn() || document.hidden || !navigator.userActivation?.hasBeenActive) return;
    this.#context ??= new AudioContext();
    const context = this.#context;
    if (context.state === 'suspended') context.resume();
    const now = context.currentTime;
    if (now - (this.#lastPlayed.get(name) ?? -1) < MIN_INTERVAL) return;
    this.#lastPlayed.set(name, now);
    const { wave, from, to, time, gain } = SOUNDS[name];
    const tone = context.createOscillator();
    const volume = context.createGain();
    tone.type = wave;
    tone.frequency.setValueAtTime(from, now);
    tone.frequency.exponentialRampToValueAtTime(to, now + time);
    volume.gain.setValueAtTime(gain * gainShare, now);
    volume.gain.exponentialRampToValueAtTime(0.0001, now + time);
    tone.connect(volume).connect(context.destination);
    tone.start(now);
    tone.stop(now + time);
  }
}
