import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { outcomes } from '../http/outcomes.js';
import { problems } from '../http/problems.js';
import { counts } from './counts.js';
import { camel, table as options } from './options.js';
import { tableForPrograms } from './program-options.js';

/**
 * Makes what is said twice of the one table that says it:
 *
 *     npm run tables        the C++ enum of outcomes; problems, options and live counts in the manuals
 *     npm run types         TypeScript's declarations of the options, which are not committed
 *
 * A test compares what is committed with what this makes.
 */

const CONTRACT = 'lib/http/README.md';
const MANUAL = 'lib/server/README.md';
const TYPES = 'lib/server/types/options.d.ts';

/** unknown-client → kUnknownClient */
const constantOf = (name) => `k-${name}`.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

function outcomeHeader() {
  return `// What becomes of a request. Made from lib/http/outcomes.js by "npm run tables".
#ifndef SPRITES_OUTCOME_H_
#define SPRITES_OUTCOME_H_

#include <cstddef>
#include <cstdint>

namespace server {

/** What became of a request. The order is the order of \`outcomes\` in JavaScript. */
enum class Outcome : uint8_t {
${outcomes.map((name) => `  ${constantOf(name)},\n`).join('')}};
constexpr size_t kOutcomes = ${outcomes.length};

/** The same for people and problem documents, in this order. */
constexpr const char* kOutcomeNames[kOutcomes] = {
${outcomes.map((name) => `    "${name}",\n`).join('')}};

}  // namespace server

#endif  // SPRITES_OUTCOME_H_
`;
}

/** A problem's name, with the one place that answers it where not every request can get it. */
const placed = ([name, { at }]) => (at === undefined ? `\`${name}\`` : `\`${name}\` (${at})`);

/** The problems of each status, in a row. */
function problemRows() {
  const all = Object.entries(problems);
  const statuses = [...new Set(all.map(([, { status }]) => status))].sort();
  return statuses.map((status) => {
    const some = all.filter(([, problem]) => problem.status === status);
    return [String(status), some.map(placed).join(', ')];
  });
}

/** What the manual says once, above its table of options. */
const SAID_ABOVE = /; 0 (?:is no limit|takes a free one)$/;

/** An option's default with its unit, and its help with the values there are. */
const optionRows = () =>
  options.map(({ name, default: usual, help, type: { unit } }) => {
    const plain = unit === 'bytes' && /^[0-9]+$/.test(usual);
    const choices = unit.includes('|') ? ` (${unit.replaceAll('|', ', ')})` : '';
    const after = unit === 'seconds' ? ' s' : plain ? ' bytes' : '';
    return [`\`--${name}\``, usual + after, help.replace(SAID_ABOVE, '') + choices];
  });

/** The names of all counts: the public ones, and those at the admin port only. */
function countLines() {
  const nameOf = ({ name, marks }) => `\`${name}\`${marks.has('kept') ? ' †' : ''}`;
  const namesOf = (operators) =>
    counts
      .filter(({ marks }) => marks.has('operators') === operators)
      .map(nameOf)
      .join(', ');
  return [`- **Public:** ${namesOf(false)}\n`, `- **Admin port only:** ${namesOf(true)}\n`];
}

/** The rows of a table. The last cell of each is written by hand: it stays as it was in the row that begins alike, and may be absent. */
const withLastCells = (rows) => (old) =>
  rows.map((row) => {
    const begin = `| ${row[0]} |`;
    const before = old.find((line) => line.startsWith(begin)) ?? '';
    const last = (before.split('|')[row.length + 1] ?? '').trim();
    return `| ${row.join(' | ')} |${last === '' ? '' : ` ${last} |`}\n`;
  });

/**
 * @param {string} text a document as it is
 * @param {string} name of the table or list in it, which stands after a marker
 * @param {(old: string[]) => string[]} make its lines, of those that there were
 * @returns {string} with these lines
 */
function withMade(text, name, make) {
  const made = new RegExp(
    `(<!-- npm run tables: ${name} -->\\n\\n(?:\\|.*\\n\\| ---.*\\n)?)((?:[|-] .*\\n)*)`
  );
  if (!made.test(text)) throw new Error(`there is no marker "npm run tables: ${name}"`);
  return text.replace(made, (_, head, old) => head + make(old.split('\n')).join(''));
}

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

/** The declarations of the options that a program may give. */
export function optionTypes() {
  const members = tableForPrograms.map(({ name, default: usual, type, help }) => {
    const unit = ['seconds', 'bytes'].includes(type.unit) ? `; ${type.unit}` : '';
    return `  /** ${help[0].toUpperCase()}${help.slice(1)}${unit}. By default ${usual}. */
  ${camel(name)}?: ${typeOf(type)};
`;
  });
  return `/** Made from lib/operator/options.js by \`npm run types\`. */
export interface Options {
${members.join('')}}
`;
}

/** Path and content of each file that is made and committed, from the root of the repository. */
export function madeFiles(read) {
  return [
    ['native/base/outcome.h', outcomeHeader()],
    [CONTRACT, withMade(read(CONTRACT), 'problems', withLastCells(problemRows()))],
    [
      MANUAL,
      withMade(withMade(read(MANUAL), 'options', withLastCells(optionRows())), 'counts', countLines)
    ]
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of madeFiles((file) => readFileSync(file, 'utf8'))) {
    writeFileSync(path, text);
  }
  writeFileSync(TYPES, optionTypes());
}
