/**
 * What a feed is to the arenas, by its key.
 *
 * @param {string} key
 * @param {(name: string) => boolean} isArena
 * @returns {undefined | 'reduced' | 'control'}
 */
export function roleOf(key, isArena) {
  const [, name, control] = /^arena\/([^/]+)(\/control)?$/.exec(key) ?? [];
  if (name === undefined || !isArena(name)) return undefined;
  return control === undefined ? 'reduced' : 'control';
}
