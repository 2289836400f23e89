import { opposite } from '../client/client.js';
import { WAYS } from './desktop.js';
import { between } from './life.js';

/**
 * Pip, who lives behind the edges of a desktop that is alone. On the torus a lone desktop catches
 * what it throws, by the opposite edge; Pip holds it for a moment, looks over the edge with it, and
 * throws it back by the edge over which it came. All of this is this page's own play: the server sees
 * a throw and its ack, and nothing gets lost, for the sprite is on the desktop all the while.
 */

const HOLD = [900, 1900]; // ms for which Pip has it
const SPEED = [0.6, 1.1]; // edge lengths a second at which it comes back
const ASIDE = 0.25; // of the edge's length: how far from where it left
const REMEMBERED = 100; // sprites thrown last: only these are Pip's to throw back

export class Companion {
  #desktop;
  #onBack;
  #thrown = new Map(); // what was thrown, by its id

  /**
   * @param {import('./desktop.js').Desktop} desktop
   * @param {(body: import('./desktop.js').Body, edge: string) => void} onBack Pip has thrown it back
   */
  constructor(desktop, onBack) {
    this.#desktop = desktop;
    this.#onBack = onBack;
  }

  /** This desktop has thrown a sprite. @param {import('./desktop.js').Body} body */
  saw({ sprite, stranger }) {
    this.#thrown.delete(sprite.id);
    this.#thrown.set(sprite.id, { ...sprite, stranger });
    if (this.#thrown.size > REMEMBERED) this.#thrown.delete(this.#thrown.keys().next().value);
  }

  /**
   * @param {import('../client/sprite.js').Sprite} sprite
   * @returns {{stranger: boolean}|undefined} what this desktop has thrown, so that Pip may have it, and whether it was a
   *     stranger's then; a stranger may have put another picture on it
   */
  knows({ id, picture, photo }) {
    const own = this.#thrown.get(id);
    const isSame = own?.picture === picture && (photo === undefined || own.photo === photo);
    return isSame ? own : undefined;
  }

  /**
   * Takes a sprite that has come around the torus.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from by which edge it came around
   * @param {number} half
   * @returns {import('./desktop.js').Body} behind its edge for now
   */
  take(sprite, from, half) {
    const edge = opposite(from);
    const at = sprite.at + (Math.random() - 0.5) * 2 * ASIDE;
    const body = this.#desktop.enter(
      { ...sprite, at: Math.min(0.9, Math.max(0.1, at)) },
      edge,
      half
    );
    const speed = between(SPEED, Math.random());
    const { over, along, out } = WAYS[edge];
    body[over.speed] = out * speed * this.#desktop[over.length];
    body[along.speed] = 0;
    body.flight = edge;
    body.stranger = this.#thrown.get(sprite.id).stranger;
    setTimeout(
      () => {
        this.#thrown.delete(sprite.id);
        this.#desktop.back(body);
        this.#onBack(body, edge);
      },
      between(HOLD, Math.random())
    );
    return body;
  }
}
