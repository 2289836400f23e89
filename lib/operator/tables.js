import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { outcomes } from '../http/outcomes.js';
import { problems } from '../http/problems.js';
import { counts } from './counts.js';

/**
 * Makes what is said twice of the one table that says it:
 *
 *     npm run tables        the C++ enum of outcomes, and the rows of problems and live counts in the manual
 *
 * A test compares what is committed with what this makes.
 */

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

/** Whether a problem is one of the admin port alone, for the manual. */
const placed = ({ title, at }) => (at === undefined ? title : `${title} (${at})`);

const problemRows = Object.entries(problems)
  .map(([name, problem]) => `| \`${name}\` | ${problem.status} | ${placed(problem)} |\n`)
  .join('');

/** A metric's name of a member in a text: /status has it in camel case. */
const asMember = (text) =>
  text.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, (name) => {
    const member = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    return counts.some((count) => count.name === member) ? member : name;
  });

const countRows = counts
  .map(({ name, marks, help }) => {
    const kept = marks.has('kept') ? ' †' : '';
    const operators = marks.has('operators') ? ' ‡' : '';
    return `| \`${name}\`${operators}${kept} | ${asMember(help)} |\n`;
  })
  .join('');

/**
 * @param {string} manual as it is
 * @returns {string} with the rows of both tables made anew, each after its marker and its head
 */
export function withTables(manual) {
  const rows = { problems: problemRows, counts: countRows };
  return Object.entries(rows).reduce((text, [name, made]) => {
    const table = new RegExp(
      `(<!-- npm run tables: ${name} -->\\n\\n\\|.*\\n\\|.*\\n)(?:\\|.*\\n)*`
    );
    if (!table.test(text)) throw new Error(`${MANUAL} has no table "${name}"`);
    return text.replace(table, (_, head) => head + made);
  }, manual);
}

/** Path and content of each file that is made, from the root of the repository. */
export function madeFiles(read) {
  return [
    ['native/base/outcome.h', outcomeHeader()],
    [MANUAL, withTables(read(MANUAL))]
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of madeFiles((file) => readFileSync(file, 'utf8'))) {
    writeFileSync(path, text);
  }
}
