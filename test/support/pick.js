/**
 * @param {object} object
 * @param {string[]} names
 * @returns {object} those of its properties
 */
export function pick(object, names) {
  return Object.fromEntries(names.map((name) => [name, object[name]]));
}
