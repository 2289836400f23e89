/**
 * Patches of a feed: JSON Patch (RFC 6902) with the operations a server sends, `add`, `remove` and
 * `replace`. What was handed to the program is never changed: the way to what is new is copied, all
 * else is shared between the versions, and everything is frozen.
 *
 * Rejected: fast-json-patch. A browser would have to be told where it is, and it either changes the
 * value in place or copies all of it.
 */

/** How deep a value may nest: an object or array in nothing is depth 1. As the server has it. */
const DEPTH = 64;

/** A value that no feed has, or a patch that doesn't fit the value. */
export class ValueError extends Error {}

const isContainer = (value) => typeof value === 'object' && value !== null;

/**
 * Freezes what isn't frozen yet, down to the last member.
 *
 * @template T
 * @param {T} value as JSON.parse gives it; what is frozen in it is frozen whole
 * @param {number} [depth] how many levels it may have
 * @returns {T}
 * @throws {ValueError} when it nests deeper
 */
export function freeze(value, depth = DEPTH) {
  if (!isContainer(value) || Object.isFrozen(value)) return value;
  if (depth === 0) throw new ValueError(`it nests deeper than ${DEPTH}`);
  for (const name of Object.keys(value)) freeze(value[name], depth - 1);
  return Object.freeze(value);
}

/** The names on the way that a JSON Pointer (RFC 6901) shows. */
function namesOf(path) {
  if (typeof path !== 'string' || (path !== '' && !path.startsWith('/'))) {
    throw new ValueError('a path is a JSON Pointer');
  }
  const names = path.split('/').slice(1);
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The place in an array, from 0 up to and with `most`. */
function placeOf(name, most) {
  const place = /^(0|[1-9]\d{0,9})$/.test(name) ? Number(name) : Infinity;
  if (place > most) throw new ValueError('the array has no such place');
  return place;
}

/** The name or place of a member that is there. */
function memberOf(container, name) {
  if (Array.isArray(container)) return placeOf(name, container.length - 1);
  if (!Object.hasOwn(container, name)) throw new ValueError('there is no such member');
  return name;
}

function applyTo(container, name, { op, value }) {
  if (op === 'add' && Array.isArray(container)) {
    const { length } = container;
    container.splice(name === '-' ? length : placeOf(name, length), 0, value);
    return;
  }
  const at = op === 'add' ? name : memberOf(container, name);
  // It would not become a member, but the prototype.
  if (at === '__proto__') throw new ValueError('no patch has that name');
  if (op !== 'remove') container[at] = value;
  else if (Array.isArray(container)) container.splice(Number(at), 1);
  else delete container[at];
}

/**
 * Applies a patch.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations
 * @returns {any} the value after them, frozen; its unchanged parts are those of `value`
 * @throws {ValueError} when the patch is none, or does not fit the value
 */
export function applyPatch(value, patch) {
  const copies = new Set(); // of this patch: no container is copied twice
  const copyOf = (container) => {
    if (!isContainer(container)) throw new ValueError('there is nothing to go into');
    if (copies.has(container)) return container;
    const copy = Array.isArray(container) ? [...container] : { ...container };
    copies.add(copy);
    return copy;
  };
  let root = value;
  for (const operation of patch) {
    const { op, path } = operation ?? {};
    const isKnown = ['add', 'remove', 'replace'].includes(op);
    if (!isKnown || (op !== 'remove') !== Object.hasOwn(operation, 'value')) {
      throw new ValueError('no operation of a server');
    }
    const names = namesOf(path);
    const last = names.pop();
    if (last === undefined) {
      if (op === 'remove') throw new ValueError('a feed has a value');
      root = operation.value;
      continue;
    }
    root = copyOf(root);
    let container = root;
    for (const name of names) {
      const at = memberOf(container, name);
      if (at === '__proto__') throw new ValueError('no patch goes that way');
      container[at] = copyOf(container[at]);
      container = container[at];
    }
    applyTo(container, last, operation);
  }
  return freeze(root);
}
