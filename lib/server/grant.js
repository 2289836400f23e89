import { readArguments, UsageError } from '../base/option-help.js';
import { readKeyFile } from '../grants/keys.js';
import { sign } from '../grants/token.js';
import { MAX_GRANT_SECONDS } from '../operator/options.js';

/** `sprites grant --grants FILE --read 'team/7/*' --for 1h`: prints a grant. */

const USAGE = `Usage: sprites grant --grants FILE [--read KEYS] [--publish KEYS] [--join] [--present]
                     [--sub NAME] [--jti NAME] [--for TIME]

Prints a grant, signed with the first "oct" key of FILE. KEYS are keys, prefix/* or *, with commas between. TIME is such as
90s, 15m, 1h or 7d, by default 1h.`;

const OPTIONS = ['grants', 'read', 'publish', 'sub', 'jti', 'for'].map((name) => ({
  name,
  default: 'none',
  type: { unit: name, expects: 'a text' }
}));
const SWITCHES = ['join', 'present', 'help'];

const UNITS = { s: 1, m: 60, h: 3600, d: 86400 };

function secondsOf(text) {
  const [, digits, unit] = /^([1-9][0-9]{0,7})([smhd])$/.exec(text) ?? [];
  const seconds = Number(digits) * UNITS[unit];
  if (!(seconds <= MAX_GRANT_SECONDS)) {
    throw new UsageError(
      `--for takes a time such as 90s, 15m, 1h or 7d, ${MAX_GRANT_SECONDS / UNITS.d}d at most, not ${JSON.stringify(text)}`
    );
  }
  return seconds;
}

/**
 * @param {string[]} args arguments behind the command's name
 * @returns {Promise<string>} the text to print
 * @throws {Error} with a message of one line
 */
export async function grantCommand(args) {
  const { values } = readArguments(args, { options: OPTIONS, switches: SWITCHES });
  const { grants, read, publish, sub, jti, join, present, help, for: time = '1h' } = values;
  if (help) return USAGE;
  if (grants === undefined) throw new UsageError('grant needs --grants FILE, the keys that sign');
  const hasRight = [read, publish, join, present].some((right) => right !== undefined);
  if (!hasRight)
    throw new UsageError('grant needs a right: --read, --publish, --join or --present');
  const claims = Object.entries({
    ...{ sub, jti, join, present },
    read: read?.split(','),
    publish: publish?.split(',')
  }).filter(([, value]) => value !== undefined);
  return sign(readKeyFile(grants), { ...Object.fromEntries(claims), seconds: secondsOf(time) });
}
