/**
 * Short sounds, made by the browser itself: no file is asked for. They begin when the visitor has done
 * something on the page; before that a browser lets none be heard.
 */

/** From one pitch to another, in Hz; seconds; how loud at most. */
const SOUNDS = {
  take: { wave: 'sine', from: 420, to: 640, time: 0.09, loud: 0.05 },
  throw: { wave: 'triangle', from: 300, to: 900, time: 0.17, loud: 0.06 },
  catch: { wave: 'triangle', from: 720, to: 360, time: 0.15, loud: 0.06 },
  away: { wave: 'sine', from: 360, to: 160, time: 0.14, loud: 0.05 },
  bump: { wave: 'sine', from: 200, to: 120, time: 0.06, loud: 0.07 }
};
const APART = 0.07; // seconds between two of one kind: of a crowd one hears one
const LOUDEST = 300; // CSS pixels a second: a bump at that speed is as loud as any

export class Sound {
  #isOn;
  #context = null;
  #last = new Map();

  /** @param {() => boolean} isOn whether anything is to be heard */
  constructor(isOn) {
    this.#isOn = isOn;
  }

  /** Two sprites have met, at so many CSS pixels a second. */
  bump(strength) {
    this.play('bump', Math.min(1, strength / LOUDEST));
  }

  /**
   * @param {keyof typeof SOUNDS} name
   * @param {number} [share] of how loud it is at most
   */
  play(name, share = 1) {
    if (!this.#isOn() || document.hidden || !navigator.userActivation?.hasBeenActive) return;
    this.#context ??= new AudioContext();
    const context = this.#context;
    if (context.state === 'suspended') context.resume();
    const now = context.currentTime;
    if (now - (this.#last.get(name) ?? -1) < APART) return;
    this.#last.set(name, now);
    const { wave, from, to, time, loud } = SOUNDS[name];
    const tone = context.createOscillator();
    const volume = context.createGain();
    tone.type = wave;
    tone.frequency.setValueAtTime(from, now);
    tone.frequency.exponentialRampToValueAtTime(to, now + time);
    volume.gain.setValueAtTime(loud * share, now);
    volume.gain.exponentialRampToValueAtTime(0.0001, now + time);
    tone.connect(volume).connect(context.destination);
    tone.start(now);
    tone.stop(now + time);
  }
}
