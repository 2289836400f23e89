import { resolve } from 'node:path';

import t from 'tap';

import { UsageError } from '../../lib/base/option-help.js';
import { camelCase, helpText, readOptions, optionTable } from '../../lib/operator/options.js';

/** Asserts that options are refused with a message of one line. */
function assertRefused(t, args, environment, pattern, name) {
  try {
    readOptions(args, environment);
    t.fail(`taken: ${name}`);
  } catch (error) {
    t.ok(error instanceof UsageError, name);
    t.match(error.message, /^[^\n]+$/, 'one line');
    t.match(error.message, pattern);
  }
}

t.test('every option of the table', async (t) => {
  const names = new Set();
  for (const { name, default: defaultValue, type, help } of optionTable) {
    t.test(name, async (t) => {
      const member = camelCase(name);
      const variable = `SPRITES_${name.toUpperCase().replaceAll('-', '_')}`;
      t.match(name, /^[a-z]+(-[a-z]+)*$/);
      t.notOk(names.has(name), 'is there once');
      names.add(name);
      // Without these --tls-port is refused.
      const requiredOptions = name === 'tls-port' ? ['--tls-cert', 'a', '--tls-key', 'b'] : [];
      const options = readOptions([`--${name}`, defaultValue, ...requiredOptions]);
      t.equal(options[member], readOptions([])[member], 'its default');
      t.equal(
        readOptions(requiredOptions, { [variable]: defaultValue })[member],
        readOptions([])[member]
      );
      t.match(helpText(), `--${name} ${type.unit.toUpperCase()}`);
      t.ok(helpText().includes(`(default ${defaultValue})`), 'the help tells its default');
      t.ok(help.length > 5 && type.expects.length > 5);
      assertRefused(t, [`--${name}`], {}, new RegExp(`--${name}`), 'its value is needed');
      // A file may have any name.
      if (type.unit === 'file') return;
      t.notOk(type.read('\n nonsense \0'), 'nonsense is refused');
      assertRefused(t, [`--${name}= `], {}, new RegExp(`--${name} takes `), 'blank');
      assertRefused(t, [], { [variable]: ' ' }, new RegExp(`${variable} takes `), 'blank');
    });
  }
});

const manyNames = (count) => Array.from({ length: count }, (_, i) => `a${i}`);
const unchangedValues = (...texts) => Object.fromEntries(texts.map((text) => [text, text]));
const listValues = (...all) => Object.fromEntries(all.map((names) => [names.join(), names]));
const NATS = 'nats://one:4222';

/**
 * By option: how its message begins (`takes`), accepted texts with their values, refused texts, and required options.
 */
const VALUES = {
  port: {
    takes: 'a whole number from 0 to 65535, not ',
    taken: { 0: 0, 65535: 65535, '0080': 80 },
    refused: [
      ...['', ' 1', '1 ', '+1', '-0', '1.0', '1e3', '0x10', 'NaN', 'Infinity', '٣', '1_000'],
      ...['eighty', '65536', '99999999999999999999']
    ]
  },
  'mailbox-memory': {
    takes: 'a size from ',
    taken: { '512k': 2 ** 19, '64M': 2 ** 26, '1G': 2 ** 30, 268435456: 2 ** 28, '2g': 2 ** 31 },
    refused: ['1KB', 'K', '1.5M', '1T', '1 M', '-1K']
  },
  // Clients read answers of up to 8 MiB (native/client) or 16 MiB; a longer one would reach them over and over.
  'answer-bytes': { takes: 'a size from ', taken: { '4M': 2 ** 22 }, refused: ['4194305', '16M'] },
  arena: {
    takes: 'none or 1 to 16 names',
    taken: {
      ...listValues(['hall'], ['hall', 'yard-2'], ['x'.repeat(32)], manyNames(16)),
      none: []
    },
    refused: ['', 'hall,', 'hall,hall', 'Hall', '1', 'x'.repeat(33), manyNames(17).join()]
  },
  // The key must be a part of the path or of the query.
  upstream: {
    takes: 'none, or a URL with {key}',
    taken: unchangedValues(
      ...['http://a/{key}', 'https://api.example:8443/of/{key}.json', 'http://[::1]/x?feed={key}'],
      ...['https://a?{key}', 'none']
    ),
    refused: [
      ...['https://api.example/', 'ftp://a/{key}', '/{key}', 'https://a/{key}/{key}'],
      ...['http:///{key}', 'http://a:99999/{key}', 'http://a\\{key}'],
      ...['https://{key}/', 'https://a.{key}', 'http://a:80{key}', 'https://{key}@a/{key}'],
      ...['https://me:secret@a/{key}', 'https://a/#{key}']
    ]
  },
  world: {
    takes: 'none, or nats:',
    beside: ['--name', 'a'],
    taken: listValues([NATS, 'nats://[::1]:4222']),
    refused: [
      ...['', 'one:4222', 'http://one', 'nats://', 'nats://me:secret@one', 'nats://a,'],
      'nats://a:65536'
    ]
  },
  name: {
    takes: 'a-z',
    beside: ['--world', NATS],
    taken: unchangedValues('rack1-a'),
    refused: ['', 'A', '1', 'a.b', 'x'.repeat(33)]
  },
  cors: {
    takes: '',
    taken: unchangedValues('*', 'none', 'https://example.org', 'http://localhost:8080'),
    refused: [
      ...['', 'example.org', 'https://example.org/', 'https://a b', 'https://a\r\nX: y', 'null'],
      ...['**', 'ftp://x'],
      // No browser writes an origin in these forms, and origins are compared letter by letter.
      ...['https://Example.org', 'https://example.org:443', 'https://bücher.example'],
      ...['https://a@example.org', 'https://example.org?a']
    ]
  }
};

for (const [name, { takes, beside = [], ...texts }] of Object.entries(VALUES)) {
  t.test(`what --${name} takes`, async (t) => {
    for (const [text, value] of Object.entries(texts.taken)) {
      t.strictSame(readOptions([`--${name}=${text}`, ...beside])[camelCase(name)], value, text);
    }
    const expectedMessage = `--${name} takes ${takes}`;
    for (const text of texts.refused) {
      assertRefused(t, [`--${name}=${text}`, ...beside], {}, expectedMessage, JSON.stringify(text));
    }
  });
}

t.test('a world', async (t) => {
  const given = ['--world', NATS, '--name', 'rack1-a'];
  t.equal(readOptions(given).worldLease, 10);
  t.equal(
    readOptions([...given, '--max-sprite', '512K', '--mailbox-bytes', '1M']).maxSprite,
    2 ** 19
  );
  for (const [more, pattern] of [
    [['--world', NATS], /--world needs --name/],
    [['--name', 'a'], /--name, .* need --world/],
    [['--world-credentials', 'file'], /--world-credentials, .* need --world/],
    [['--world-url', 'http://a'], /--world-url, .* need --world/],
    [[...given, '--world-url', 'http://a/b'], /--world-url takes none or http:/],
    [[...given, '--world-key', 'file'], /--world-certificate and --world-key go together/],
    [[...given, '--max-sprite', '524289', '--mailbox-bytes', '1M'], /512K at most with --world/]
  ]) {
    assertRefused(t, more, {}, pattern, more.join(' '));
  }
});

t.test('the command line wins over the environment, the last word over the first', async (t) => {
  const environment = { SPRITES_PORT: '1000', SPRITES_HOLD: '50' };
  const options = readOptions(['--port', '2000', '--port', '3000'], environment);
  t.strictSame([options.port, options.hold], [3000, 50]);
});

t.test('what Kubernetes sets beside a service called "sprites" is no port of ours', async (t) => {
  const environment = {
    SPRITES_PORT: 'tcp://10.0.0.1:80',
    SPRITES_PORT_80_TCP: 'tcp://10.0.0.1:80',
    SPRITES_SERVICE_HOST: '10.0.0.1',
    SPRITES_SERVICE_PORT: '80',
    SPRITES_ADMIN_PORT: 'udp://10.0.0.1:80',
    SPRITES_TLS_PORT: 'tcp://[fd00::1]:443',
    SPRITES_TRANSIENT_PORT: 'sctp://10.0.0.1:80'
  };
  t.strictSame(readOptions([], environment), readOptions([]));
  t.equal(readOptions(['--port', '1234'], environment).port, 1234);
  t.throws(() => readOptions(['--port', 'tcp://10.0.0.1:80']), /--port takes/);
  t.throws(() => readOptions([], { SPRITES_PORT: 'http://10.0.0.1' }), /SPRITES_PORT takes/);
  t.throws(() => readOptions([], { SPRITES_HOLD: 'tcp://10.0.0.1:80' }), /SPRITES_HOLD takes/);
});

t.test('other variables of the environment are left alone, and empty ones', async (t) => {
  const others = { PORT: '1', SPRITES: 'x', SPRITES_: 'y', HOME: '/', SPRITES_PORT: '' };
  t.strictSame(readOptions([], others), readOptions([]));
});

t.test(
  'no message has the password of a URL: it is written to the log of the system',
  async (t) => {
    for (const [name, url] of [
      ['world', 'nats://me:secret@one:4222,nats://other:secret@two'],
      ['upstream', 'https://me:secret@a/{key}'],
      ['upstream', 'https://secret@a/{key}'],
      ['world-url', 'http://me:p@s,secret/secret@a'],
      ['cors', 'https://me:secret@example.org']
    ]) {
      try {
        readOptions([], { [`SPRITES_${name.toUpperCase().replaceAll('-', '_')}`]: url });
        t.fail(url);
      } catch ({ message }) {
        t.notMatch(message, 'secret', url);
        t.match(message, /not ".*:\/\/…@/, 'the rest is shown');
      }
    }
  }
);

t.test('what is no option, or no value of one, is told with what to do', async (t) => {
  const wrong = [
    [['--prot', '1'], /--prot.*did you mean --port\?/],
    [['--leaase', '1'], /--leaase.*did you mean --lease\?/],
    [['--nonsense', '1'], /--nonsense.*see --help/],
    [['--port'], /--port takes a whole number .*, and nothing follows it/],
    [['--workers', '--lease', '5'], /--workers takes a whole .*, not the option --lease/],
    [['--state', '--lease=5'], /--state takes a file, not the option --lease=5/],
    [['-x', '1'], /there is no option -x; see --help/],
    [['--port', '-1'], /--port takes a whole number from 0 to 65535, not "-1"/],
    [['--capacity', '0'], /--capacity/],
    [['--max-sprite', '1G'], /--max-sprite/],
    [['--private-join', 'constructor'], /--private-join takes yes or no/],
    [['--door', 'native'], /^there is no option --door: there is one door/],
    [['--door=node', '--help=yes'], /^there is no option --door: there is one door/],
    [['--handed-over', '9'], /^there is no option --handed-over: .*--connections/],
    [
      ['--address-handed-over', '9'],
      /^there is no option --address-handed-over: .*--address-connections/
    ],
    [['--max-sprite', '64K', '--mailbox-bytes', '1K'], /--mailbox-bytes/],
    [['8080'], /"8080" belongs to no option/],
    [['--world', 'nats://a', 'nats://me:secret@b'], /^"nats:\/\/…@b" belongs to no option/],
    [['--check', '0'], /--check takes none or a whole number from 1 to 16000000, not "0"/],
    [['--help=yes'], /--help takes no value, not "yes"/],
    [['--no-help'], /there is no option --no-help/]
  ];
  for (const [args, pattern] of wrong) assertRefused(t, args, {}, pattern, args.join(' '));
});

t.test('switches, long and short, whatever else is wrong', async (t) => {
  for (const [name, flags] of Object.entries({
    help: ['--help', '-h'],
    version: ['--version', '-v', '-V']
  })) {
    for (const flag of flags) {
      t.strictSame(readOptions([flag]), { [name]: true }, flag);
      t.strictSame(readOptions([flag], { SPRITES_PORT: 'x' }), { [name]: true }, flag);
      t.strictSame(readOptions(['--port', 'x', flag]), { [name]: true }, flag);
      t.strictSame(readOptions(['--nonsense', flag]), { [name]: true }, flag);
    }
  }
  for (const flag of ['-h', '-v', '-V']) t.match(helpText(), ` ${flag}`);
});

t.test('what options must hold among each other', async (t) => {
  const alone = /^--tls-port needs --tls-cert and --tls-key, what it serves TLS with$/;
  // Its default value is refused, too.
  for (const port of ['443', '8443']) assertRefused(t, ['--tls-port', port], {}, alone, port);
  assertRefused(t, [], { SPRITES_TLS_PORT: '8443' }, alone, 'by the environment');
  const pair = ['--tls-cert', 'a', '--tls-key', 'b'];
  t.equal(readOptions([...pair, '--tls-port', '443']).tlsPort, 443);
  t.equal(readOptions([], { SPRITES_TLS_PORT: '' }).tlsPort, 8443);
  const same = /^--port, --transient-port, --tls-port and --admin-port must be different ports$/;
  for (const ports of [
    ['--transient-port', '8080'],
    ['--admin-port', '8080'],
    ['--port', '8443', ...pair],
    ['--admin-port', '9', '--transient-port', '9', '--host', '::1', '--admin-host', '::1']
  ]) {
    assertRefused(t, ports, {}, same, ports.join(' '));
  }
  for (const ports of [
    ['--port', '0', '--transient-port', '0', '--admin-port', '0', '--tls-port', '0', ...pair],
    ['--port', '8443'],
    ['--host', '192.0.2.1', '--admin-port', '8080']
  ]) {
    t.ok(readOptions(ports), ports.join(' '));
  }
  assertRefused(t, ['--games', 'mine'], {}, /^--games needs --arena, the names of /, 'no arena');
  t.equal(readOptions(['--games', 'mine', '--arena', 'hall']).games, resolve('mine'));
  const wrong = {
    'a mailbox too small for one sprite': '--max-sprite=4096 --mailbox-bytes=4096',
    'all mailboxes smaller than one': '--mailbox-memory=1K --mailbox-bytes=2K --max-sprite=1000',
    'a log that must be moved to grow': '--feed-bytes=1M --feed-memory=4M --log-bytes=2M'
  };
  for (const [name, args] of Object.entries(wrong))
    assertRefused(t, args.split(' '), {}, /--/, name);
});

t.test('the help is for a terminal', async (t) => {
  const lines = helpText().split('\n');
  t.match(lines[0], /^Usage: sprites/);
  t.match(helpText(), /^ +sprites grant --grants FILE/m, 'and the other commands');
  t.equal(lines.at(-1), '');
  t.ok(lines.every((line) => line === line.trimEnd() && line.length <= 100));
});
