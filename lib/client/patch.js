/**
 * JSON Patch (RFC 6902) by JSON Pointer (RFC 6901), for the client and for the server: test/vectors/feeds.json
 * holds them and the C++ client to the same. A value is never changed. The way to what is new is copied, once in a
 * patch; all else is shared between the versions.
 *
 * A pointer leads to what a value has of its own and to nothing else: no member that objects inherit, no character of
 * a string, no element but by the number that JavaScript would write. Time is bounded by the sizes of the value and the
 * patch, of what `copy` copies (`room`), and SHIFTS.
 *
 * Rejected: fast-json-patch. It reads what objects inherit, takes "/00" and "/4294967296" for the first element,
 * refuses members named "__proto__", and copies the whole value for a `move`.
 */

/** How deep a value may nest: an object or array in nothing is depth 1. */
export const DEPTH = 64;

/** Elements that arrays may move along for those that come and go before them, in one patch: at worst a second. */
const SHIFTS = 2 ** 28;

/** A value that no feed has, or a patch that is none. */
export class ValueError extends Error {}

/** A patch that does not fit the value. */
export class ConflictError extends ValueError {}

/** A patch that copies more than there is room for. */
export class RoomError extends ValueError {}

const isContainer = (value) => typeof value === 'object' && value !== null;

/**
 * @param {unknown} value as JSON.parse gives it
 * @param {number} depth how many levels it may have
 * @throws {ValueError} when it nests deeper
 */
export function checkDepth(value, depth) {
  if (!isContainer(value)) return;
  if (depth <= 0) throw new ValueError(`objects and arrays nest at most ${DEPTH} deep`);
  for (const name of Object.keys(value)) checkDepth(value[name], depth - 1);
}

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

/**
 * Sets an object's own member, whatever it is called: assigning to "__proto__" would set the prototype instead.
 *
 * @param {any} object
 * @param {string} name
 * @param {unknown} value
 */
export function setMember(object, name, value) {
  if (name in Object.prototype) {
    const own = { value, enumerable: true, writable: true, configurable: true };
    Object.defineProperty(object, name, own);
  } else {
    object[name] = value;
  }
}

/**
 * @param {any} a a value as JSON.parse gives it
 * @param {any} b another one, which nests at most DEPTH deep
 * @returns {boolean} whether they are the same value
 */
export function equal(a, b) {
  if (a === b) return true;
  if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a)) {
    return a.length === b.length && a.every((one, i) => equal(one, b[i]));
  }
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}

/** The names on the way that a pointer shows. */
function namesOf(pointer) {
  const isPointer =
    typeof pointer === 'string' &&
    (pointer === '' || pointer.startsWith('/')) &&
    !/~(?![01])/.test(pointer);
  if (!isPointer) throw new ValueError('a path is a JSON Pointer (RFC 6901)');
  const names = pointer.split('/').slice(1);
  if (!pointer.includes('~')) return names;
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A name as an error may say it. */
const quote = (name) => JSON.stringify(name.slice(0, 60));

/** The place in an array, from 0 up to and with `most`. */
function placeOf(name, most) {
  const place = /^(0|[1-9]\d{0,9})$/.test(name) ? Number(name) : Infinity;
  if (place > most) throw new ConflictError(`the array has no place ${quote(name)}`);
  return place;
}

/** The name or place of a member that is there. */
function memberOf(container, name) {
  if (Array.isArray(container)) return placeOf(name, container.length - 1);
  if (!isContainer(container) || !Object.hasOwn(container, name)) {
    throw new ConflictError(`there is no member ${quote(name)}`);
  }
  return name;
}

/** The operations of RFC 6902, and the member that each must have besides `op` and `path`. */
const OPERATIONS = new Map([
  ['add', 'value'],
  ['remove', undefined],
  ['replace', 'value'],
  ['move', 'from'],
  ['copy', 'from'],
  ['test', 'value']
]);

/** Those that a server sends. */
const SENT = ['add', 'remove', 'replace'];

/** A value under the operations of one patch. */
class Patching {
  root;
  /** Containers that this patch has made: none is copied twice. */
  #own = new Set();
  #shifts = SHIFTS;
  #room;

  constructor(root, room) {
    this.root = root;
    this.#room = room;
  }

  apply(operation) {
    const { op, path, from } = operation ?? {};
    const names = namesOf(path);
    switch (op) {
      case 'add':
        return this.#add(names, valueOf(operation, names));
      case 'remove':
        return this.#remove(names);
      case 'replace':
        return this.#replace(names, valueOf(operation, names));
      case 'move':
        return this.#move(from, path);
      case 'copy':
        return this.#add(names, this.#copyOf(this.#find(namesOf(from)), DEPTH - names.length));
      default:
        return this.#test(names, valueOf(operation, names));
    }
  }

  /** Counts the elements of an array that move along. */
  #shift(elements) {
    this.#shifts -= elements;
    if (this.#shifts >= 0) return;
    throw new ValueError('it takes too long: publish the whole value instead');
  }

  #find(names) {
    let value = this.root;
    for (const name of names) value = value[memberOf(value, name)];
    return value;
  }

  /** A container that may be changed, in the place of one that may not. */
  #ownOf(container) {
    if (!isContainer(container)) throw new ConflictError('what is there has no members');
    if (this.#own.has(container)) return container;
    const own = Array.isArray(container) ? container.slice() : { ...container };
    this.#own.add(own);
    return own;
  }

  /** The container that the last name is of. */
  #open(names) {
    this.root = this.#ownOf(this.root);
    let container = this.root;
    for (const name of names.slice(0, -1)) {
      const at = memberOf(container, name);
      container[at] = this.#ownOf(container[at]);
      container = container[at];
    }
    return container;
  }

  #add(names, value) {
    if (names.length === 0) {
      this.root = value;
      return;
    }
    const container = this.#open(names);
    const name = names.at(-1);
    if (!Array.isArray(container)) {
      setMember(container, name, value);
      return;
    }
    const { length } = container;
    const place = name === '-' ? length : placeOf(name, length);
    this.#shift(length - place);
    container.splice(place, 0, value);
  }

  #remove(names) {
    if (names.length === 0) throw new ValueError('the whole value cannot be removed');
    const container = this.#open(names);
    const at = memberOf(container, names.at(-1));
    if (!Array.isArray(container)) {
      delete container[at];
      return;
    }
    this.#shift(container.length - at);
    container.splice(at, 1);
  }

  #replace(names, value) {
    if (names.length === 0) {
      this.root = value;
      return;
    }
    const container = this.#open(names);
    container[memberOf(container, names.at(-1))] = value;
  }

  #move(from, path) {
    const names = namesOf(from);
    const value = this.#find(names);
    if (path === from) return;
    if (path.startsWith(`${from}/`)) throw new ValueError('nothing moves into itself');
    this.#remove(names);
    this.#add(namesOf(path), value);
  }

  /** Copies a value: sharing it would change both, and could double it with each operation. */
  #copyOf(value, depth) {
    // At least so much text.
    this.#room -= typeof value === 'string' ? value.length + 2 : 1;
    if (this.#room < 0) throw new RoomError('it copies more than a value may have');
    if (!isContainer(value)) return value;
    if (depth <= 0) throw new ValueError(`objects and arrays nest at most ${DEPTH} deep`);
    if (Array.isArray(value)) return value.map((one) => this.#copyOf(one, depth - 1));
    const copy = {};
    for (const name of Object.keys(value)) {
      this.#room -= name.length + 3;
      setMember(copy, name, this.#copyOf(value[name], depth - 1));
    }
    return copy;
  }

  #test(names, value) {
    if (!equal(this.#find(names), value)) {
      throw new ConflictError('there is another value');
    }
  }
}

/** The value that an operation brings to where these names lead. */
function valueOf(operation, names) {
  checkDepth(operation.value, DEPTH - names.length);
  return operation.value;
}

/**
 * Applies a patch.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations
 * @param {{room?: number, known?: Iterable<string>}} [how] `room`: how many characters of JSON `copy` may copy in
 *     all, by default none; `known`: the operations there are, by default all
 * @returns {any} the value after them; its unchanged parts are those of `value`, and of the operations
 * @throws {ValueError} when the patch is none; `operation` says which of them
 * @throws {ConflictError} when it does not fit the value
 * @throws {RoomError} when it copies too much
 */
export function applyOperations(value, patch, { room = 0, known = OPERATIONS.keys() } = {}) {
  if (!Array.isArray(patch)) throw new ValueError('a patch is an array of operations');
  const all = new Set(known);
  const patching = new Patching(value, room);
  for (const [index, operation] of patch.entries()) {
    try {
      const op = operation?.op;
      const needed = OPERATIONS.get(op);
      if (!all.has(op)) throw new ValueError(`"op" is one of ${[...all].join(', ')}`);
      if (needed !== undefined && !Object.hasOwn(operation, needed)) {
        throw new ValueError(`"${op}" needs "${needed}"`);
      }
      patching.apply(operation);
    } catch (error) {
      throw Object.assign(error, { operation: index });
    }
  }
  return patching.root;
}

/**
 * Applies a patch that a server has sent.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations: `add`, `remove` and `replace`
 * @returns {any} the value after them, frozen; its unchanged parts are those of `value`
 * @throws {ValueError} when the patch is none, or does not fit the value
 */
export function applyPatch(value, patch) {
  return freeze(applyOperations(value, patch, { known: SENT }));
}
