import { opposite } from '../client/client.js';
import { WAYS } from './desktop.js';
import { between } from './life.js';

/**
 * Pip, a companion behind the edges of a lone desktop. On the torus a lone desktop catches its own
 * throws at the opposite edge. Pip holds such a sprite for a moment, shows it over the edge, and
 * throws it back over the edge over which it left. All of this happens in the page: the server sees
 * a throw and its ack. No sprite gets lost, since it is on the desktop all the time.
 */

const HOLD_TIMES = [900, 1900]; // ms for which Pip holds a sprite
const THROW_SPEEDS = [0.6, 1.1]; // edge lengths a second of a sprite that Pip throws
const MAX_OFFSET = 0.25; // most distance between exit and return, in edge lengths
const MAX_REMEMBERED = 100; // thrown sprites; Pip throws back only these

export class Companion {
  #desktop;
  #onReturn;
  #thrown = new Map(); // thrown sprites by id, the oldest first

  /**
   * @param {import('./desktop.js').Desktop} desktop
   * @param {(body: import('./desktop.js').Body, edge: string) => void} onReturn called when Pip has thrown a body back
   */
  constructor(desktop, onReturn) {
    this.#desktop = desktop;
    this.#onReturn = onReturn;
  }

  /** Remembers a sprite that this desktop throws. @param {import('./desktop.js').Body} body */
  rememberThrow({ sprite, stranger }) {
    this.#thrown.delete(sprite.id);
    this.#thrown.set(sprite.id, { ...sprite, stranger });
    if (this.#thrown.size > MAX_REMEMBERED) this.#thrown.delete(this.#thrown.keys().next().value);
  }

  /**
   * @param {import('../client/sprite.js').Sprite} sprite
   * @returns {{stranger: boolean}|undefined} the sprite as this desktop threw it, and whether it was a stranger's then;
   *     undefined for any other sprite, and for one on which a stranger has put another picture
   */
  findThrown({ id, picture, photo }) {
    const thrown = this.#thrown.get(id);
    const isSame = thrown?.picture === picture && (photo === undefined || thrown.photo === photo);
    return isSame ? thrown : undefined;
  }

  /**
   * Gives Pip a sprite that has come around the torus.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from the edge at which it comes in
   * @param {number} half
   * @returns {import('./desktop.js').Body} the body, behind its edge until Pip throws it back
   */
  catchSprite(sprite, from, half) {
    const edge = opposite(from);
    const at = sprite.at + (Math.random() - 0.5) * 2 * MAX_OFFSET;
    const body = this.#desktop.enter(
      { ...sprite, at: Math.min(0.9, Math.max(0.1, at)) },
      edge,
      half
    );
    const speed = between(THROW_SPEEDS, Math.random());
    const { over, along, out } = WAYS[edge];
    body[over.speed] = out * speed * this.#desktop[over.length];
    body[along.speed] = 0;
    body.flight = edge;
    body.stranger = this.#thrown.get(sprite.id).stranger;
    setTimeout(
      () => {
        this.#thrown.delete(sprite.id);
        this.#desktop.returnFromEdge(body);
        this.#onReturn(body, edge);
      },
      between(HOLD_TIMES, Math.random())
    );
    return body;
  }
}
