/**
 * JSON Patch (RFC 6902) with JSON Pointer (RFC 6901), for the client and for the server. test/vectors/feeds.json
 * tests them and the C++ client. A value is never changed. The containers around a change are copied, once in a
 * patch; all other parts are shared between the versions.
 *
 * A pointer resolves only to own members of objects and to elements of arrays: not to inherited members, not to the
 * characters of a string, and to an element only by its number as JavaScript writes it. Time is bounded by the sizes
 * of the value and the patch, by the size of all copies (`room`), and by SHIFTS.
 *
 * Rejected: fast-json-patch. It reads inherited members, accepts "/00" and "/4294967296" for the first element,
 * refuses members named "__proto__", and copies the whole value for a `move`.
 */

/** Deepest nesting of a value: the outermost object or array has depth 1. */
export const DEPTH = 64;

/** Most elements of arrays that the insertions and removals of one patch may shift: at worst a second. */
const SHIFTS = 2 ** 28;

/** An invalid value, or an invalid patch. */
export class ValueError extends Error {}

/** A patch that does not fit the value. */
export class ConflictError extends ValueError {}

/** A patch that copies more than `room`. */
export class RoomError extends ValueError {}

const isContainer = (value) => typeof value === 'object' && value !== null;

/**
 * @param {unknown} value as JSON.parse returns it
 * @param {number} depth most levels
 * @throws {ValueError} when it nests deeper
 */
export function checkDepth(value, depth) {
  if (!isContainer(value)) return;
  if (depth <= 0) throw new ValueError(`objects and arrays nest at most ${DEPTH} deep`);
  for (const name of Object.keys(value)) checkDepth(value[name], depth - 1);
}

/**
 * Freezes a value and all of its members.
 *
 * @template T
 * @param {T} value as JSON.parse returns it; a frozen part must be frozen with all of its members
 * @param {number} [depth] most levels
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
 * Sets an object's own member with any name: assigning to "__proto__" would set the prototype instead.
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
 * @param {any} a a value as JSON.parse returns it
 * @param {any} b another value, which nests at most DEPTH deep
 * @returns {boolean} whether they are equal
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

/** Returns the names in a pointer. */
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

/** Quotes a name for an error's message. */
const quote = (name) => JSON.stringify(name.slice(0, 60));

/** Returns a place in an array, from 0 to `maxIndex` (inclusive). */
function indexFrom(name, maxIndex) {
  const index = /^(0|[1-9]\d{0,9})$/.test(name) ? Number(name) : Infinity;
  if (index > maxIndex) throw new ConflictError(`the array has no place ${quote(name)}`);
  return index;
}

/** Returns the name, or the place in an array, of an existing member. */
function memberOf(container, name) {
  if (Array.isArray(container)) return indexFrom(name, container.length - 1);
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

/** Operations that a server sends. */
const SERVER_OPERATIONS = ['add', 'remove', 'replace'];

/** Applies the operations of one patch to a value. */
class PatchApplication {
  root;
  /** Containers that this patch has copied; no container is copied twice. */
  #copied = new Set();
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

  /** Counts shifted elements of an array. */
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

  /** Returns the container itself, if this patch has copied it before, or else a copy. */
  #copyOnce(container) {
    if (!isContainer(container)) throw new ConflictError('what is there has no members');
    if (this.#copied.has(container)) return container;
    const copy = Array.isArray(container) ? container.slice() : { ...container };
    this.#copied.add(copy);
    return copy;
  }

  /** Returns the container of the last name, after copying the containers on the way to it. */
  #openContainer(names) {
    this.root = this.#copyOnce(this.root);
    let container = this.root;
    for (const name of names.slice(0, -1)) {
      const member = memberOf(container, name);
      container[member] = this.#copyOnce(container[member]);
      container = container[member];
    }
    return container;
  }

  #add(names, value) {
    if (names.length === 0) {
      this.root = value;
      return;
    }
    const container = this.#openContainer(names);
    const name = names.at(-1);
    if (!Array.isArray(container)) {
      setMember(container, name, value);
      return;
    }
    const { length } = container;
    const index = name === '-' ? length : indexFrom(name, length);
    this.#shift(length - index);
    container.splice(index, 0, value);
  }

  #remove(names) {
    if (names.length === 0) throw new ValueError('the whole value cannot be removed');
    const container = this.#openContainer(names);
    const member = memberOf(container, names.at(-1));
    if (!Array.isArray(container)) {
      delete container[member];
      return;
    }
    this.#shift(container.length - member);
    container.splice(member, 1);
  }

  #replace(names, value) {
    if (names.length === 0) {
      this.root = value;
      return;
    }
    const container = this.#openContainer(names);
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

  /** Copies a value. A shared one would change in both places, and could double with each operation. */
  #copyOf(value, depth) {
    // The least length of its JSON.
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

/** Returns an operation's value, after a check of its depth at the place that the names lead to. */
function valueOf(operation, names) {
  checkDepth(operation.value, DEPTH - names.length);
  return operation.value;
}

/**
 * Applies a patch.
 *
 * @param {any} value is not changed
 * @param {any} patch the operations
 * @param {{room?: number, known?: Iterable<string>}} [how] `room`: most characters of JSON that all `copy`
 *     operations may copy, by default none; `known`: the accepted operations, by default all
 * @returns {any} the new value; it shares its unchanged parts with `value`, and with the operations
 * @throws {ValueError} for an invalid patch; the error's `operation` is the index of the invalid operation
 * @throws {ConflictError} when the patch does not fit the value
 * @throws {RoomError} when it copies too much
 */
export function applyOperations(value, patch, { room = 0, known = OPERATIONS.keys() } = {}) {
  if (!Array.isArray(patch)) throw new ValueError('a patch is an array of operations');
  const acceptedNames = new Set(known);
  const application = new PatchApplication(value, room);
  for (const [index, operation] of patch.entries()) {
    try {
      const op = operation?.op;
      const needed = OPERATIONS.get(op);
      if (!acceptedNames.has(op))
        throw new ValueError(`"op" is one of ${[...acceptedNames].join(', ')}`);
      if (needed !== undefined && !Object.hasOwn(operation, needed)) {
        throw new ValueError(`"${op}" needs "${needed}"`);
      }
      application.apply(operation);
    } catch (error) {
      throw Object.assign(error, { operation: index });
    }
  }
  return application.root;
}

/**
 * Applies a patch that a server has sent.
 *
 * @param {any} value is not changed
 * @param {any} patch the operations: `add`, `remove` and `replace`
 * @returns {any} the new value, frozen; it shares its unchanged parts with `value`
 * @throws {ValueError} when the patch is invalid, or does not fit the value
 */
export function applyPatch(value, patch) {
  return freeze(applyOperations(value, patch, { known: SERVER_OPERATIONS }));
}
