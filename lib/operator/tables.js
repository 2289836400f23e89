import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { outcomes } from '../http/outcomes.js';
import { problems } from '../http/problems.js';
import { countTable } from './counts.js';
import { camelCase, optionTable as options } from './options.js';
import { programOptionTable } from './program-options.js';

/**
 * Generates texts and code from tables that would otherwise be written twice:
 *
 *     npm run tables        the C++ enum of outcomes; problems, options and live counts in the manuals
 *     npm run types         TypeScript's declarations of the options, which are not committed
 *
 * A test compares the committed files with the generated ones.
 */

const CONTRACT = 'lib/http/README.md';
const MANUAL = 'lib/server/README.md';
const TYPES = 'lib/server/types/options.d.ts';

/** Returns a name in C++: unknown-client → kUnknownClient */
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

/** Returns a problem's name, with the only port that answers with it, where there is one. */
const problemCell = ([name, { onlyPort }]) =>
  onlyPort === undefined ? `\`${name}\`` : `\`${name}\` (${onlyPort})`;

/** Returns the problems in a table with one row for each status. */
function problemRows() {
  const allProblems = Object.entries(problems);
  const statuses = [...new Set(allProblems.map(([, { status }]) => status))].sort();
  return statuses.map((status) => {
    const problemsOfStatus = allProblems.filter(([, problem]) => problem.status === status);
    return [String(status), problemsOfStatus.map(problemCell).join(', ')];
  });
}

/** Ends of help texts that the manual explains once, above its table of options. */
const EXPLAINED_ABOVE = /; 0 (?:is no limit|takes a free one)$/;

/** Returns an option's row: its default with its unit, and its help with the possible values. */
const optionRows = () =>
  options.map(({ name, default: usual, help, type: { unit } }) => {
    const isPlainNumber = unit === 'bytes' && /^[0-9]+$/.test(usual);
    const choices = unit.includes('|') ? ` (${unit.replaceAll('|', ', ')})` : '';
    const suffix = unit === 'seconds' ? ' s' : isPlainNumber ? ' bytes' : '';
    return [`\`--${name}\``, usual + suffix, help.replace(EXPLAINED_ABOVE, '') + choices];
  });

/** Returns the names of all counts: the public ones, and those at the admin port only. */
function countLines() {
  const nameOf = ({ name, marks }) => `\`${name}\`${marks.has('kept') ? ' †' : ''}`;
  const namesOf = (operators) =>
    countTable
      .filter(({ marks }) => marks.has('operators') === operators)
      .map(nameOf)
      .join(', ');
  return [`- **Public:** ${namesOf(false)}\n`, `- **Admin port only:** ${namesOf(true)}\n`];
}

/** Returns the rows of a table. The last cell of a row is written by hand: it is copied from the old row with the same first cell, if any. */
const withLastCells = (rows) => (oldRows) =>
  rows.map((row) => {
    const rowStart = `| ${row[0]} |`;
    const oldRow = oldRows.find((line) => line.startsWith(rowStart)) ?? '';
    const lastCell = (oldRow.split('|')[row.length + 1] ?? '').trim();
    return `| ${row.join(' | ')} |${lastCell === '' ? '' : ` ${lastCell} |`}\n`;
  });

/**
 * Replaces a generated table or list in a document.
 *
 * @param {string} text the document
 * @param {string} name name in the marker before the table or list
 * @param {(old: string[]) => string[]} generate returns the new lines, given the old ones
 * @returns {string} the document with the new lines
 */
function replaceGenerated(text, name, generate) {
  const markerAndRows = new RegExp(
    `(<!-- npm run tables: ${name} -->\\n\\n(?:\\|.*\\n\\| ---.*\\n)?)((?:[|-] .*\\n)*)`
  );
  if (!markerAndRows.test(text)) throw new Error(`there is no marker "npm run tables: ${name}"`);
  return text.replace(markerAndRows, (_, head, old) => head + generate(old.split('\n')).join(''));
}

/** Returns TypeScript's type for the values of an option in a program. */
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

/** Returns the declarations of the options of createServer. */
export function optionTypes() {
  const members = programOptionTable.map(({ name, default: usual, type, help }) => {
    const unit = ['seconds', 'bytes'].includes(type.unit) ? `; ${type.unit}` : '';
    return `  /** ${help[0].toUpperCase()}${help.slice(1)}${unit}. By default ${usual}. */
  ${camelCase(name)}?: ${typeOf(type)};
`;
  });
  return `/** Made from lib/operator/options.js by \`npm run types\`. */
export interface Options {
${members.join('')}}
`;
}

/** Returns path and content of each generated file that is committed; paths from the root of the repository. */
export function generatedFiles(read) {
  return [
    ['native/base/outcome.h', outcomeHeader()],
    [CONTRACT, replaceGenerated(read(CONTRACT), 'problems', withLastCells(problemRows()))],
    [
      MANUAL,
      replaceGenerated(
        replaceGenerated(read(MANUAL), 'options', withLastCells(optionRows())),
        'counts',
        countLines
      )
    ]
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of generatedFiles((file) => readFileSync(file, 'utf8'))) {
    writeFileSync(path, text);
  }
  writeFileSync(TYPES, optionTypes());
}
