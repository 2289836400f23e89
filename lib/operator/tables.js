import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { outcomes } from '../http/outcomes.js';
import { problems } from '../http/problems.js';
import { table as options } from './options.js';

/**
 * Makes what is said twice of the one table that says it:
 *
 *     npm run tables        the C++ enum of outcomes; problems and options in the manuals
 *
 * A test compares what is committed with what this makes.
 */

const CONTRACT = 'lib/http/README.md';
const MANUAL = 'lib/server/README.md';

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

/** A row of a table. Its last cell is written by hand: it stays as it is in the old line that begins alike, and may be absent. */
function withLastCell(row, old) {
  const begin = `| ${row[0]} |`;
  const before = old.find((line) => line.startsWith(begin)) ?? '';
  const last = (before.split('|')[row.length + 1] ?? '').trim();
  return `| ${row.join(' | ')} |${last === '' ? '' : ` ${last} |`}\n`;
}

/**
 * @param {string} text a document
 * @param {string} name of the table in it, which stands after a marker
 * @param {string[][]} rows its cells, without the last of each row
 * @returns {string} the document with these rows
 */
function withMade(text, name, rows) {
  const made = new RegExp(
    `(<!-- npm run tables: ${name} -->\\n\\n\\|.*\\n\\| ---.*\\n)((?:\\| .*\\n)*)`
  );
  if (!made.test(text)) throw new Error(`there is no marker "npm run tables: ${name}"`);
  return text.replace(made, (_, head, old) => {
    const lines = old.split('\n');
    return head + rows.map((row) => withLastCell(row, lines)).join('');
  });
}

/** Path and content of each file that is made, from the root of the repository. */
export function madeFiles(read) {
  return [
    ['native/base/outcome.h', outcomeHeader()],
    [CONTRACT, withMade(read(CONTRACT), 'problems', problemRows())],
    [MANUAL, withMade(read(MANUAL), 'options', optionRows())]
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of madeFiles((file) => readFileSync(file, 'utf8'))) {
    writeFileSync(path, text);
  }
}
