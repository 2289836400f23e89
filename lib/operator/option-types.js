import { camel } from './options.js';
import { tableForPrograms } from './program-options.js';

/**
 * Writes the declarations of the options to stdout, from their table:
 *
 *     node lib/operator/option-types.js > lib/server/types/options.d.ts    (npm run types)
 */

/** TypeScript's type of an option's values, as a program may give them. */
function typeOf({ unit, read }) {
  if (unit === 'bytes') return 'number | string';
  if (unit.includes('|'))
    return unit
      .split('|')
      .map((value) => `'${value}'`)
      .join(' | ');
  if (!['number', 'seconds'].includes(unit)) return 'string';
  return read('none') === 'none' ? "number | 'none'" : 'number';
}

const members = tableForPrograms.map(({ name, default: usual, type, help }) => {
  const unit = ['seconds', 'bytes'].includes(type.unit) ? `; ${type.unit}` : '';
  return `  /** ${help[0].toUpperCase()}${help.slice(1)}${unit}. By default ${usual}. */
  ${camel(name)}?: ${typeOf(type)};
`;
});

process.stdout.write(`/** Made from lib/operator/options.js by \`npm run types\`. */
export interface Options {
${members.join('')}}
`);
