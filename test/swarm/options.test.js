import t from 'tap';

import { help, parse, optionTable } from '../../lib/swarm/options.js';
import { secondsIn } from '../../lib/swarm/stages.js';
import { resultWith } from '../support/swarm.js';

/** The command line of bin/sprites-swarm: parsed options, and the messages for refused ones. */

const parsed = (line) => parse(line.split(' '));

t.test('the help has every option', async (t) => {
  for (const { name } of optionTable) t.match(help(), `--${name}`);
  t.match(help(), /--time TIME .*\n.*--duration, -d/);
});

t.test('times as other load testers write them', async (t) => {
  const times = { 30: 30, 1.5: 1.5, '30s': 30, '1m30s': 90, '2h': 7200, '250ms': 0.25 };
  for (const [text, seconds] of Object.entries(times)) t.equal(secondsIn(text), seconds, text);
  for (const text of ['', 's', '3x', '-1s', '1s30', '1e3', '1 s']) t.notOk(secondsIn(text), text);
  for (const timeOption of ['--time 1m', '--time=60', '--duration 1m', '-d 60s', '-d1m', '-z 60']) {
    t.equal(parsed(`park 5 ${timeOption}`).time, 60, timeOption);
  }
});

const READ = {
  'throw 100 --rate 50': { throwing: 'rate', rate: 50, time: 10 },
  'throw 10': { throwing: 'closed', throwers: 10 },
  latency: { clients: 1, rate: 1000 },
  'latency 5 --probes 2 --probe-rate 3': { probes: 2, probeRate: 3 },
  'storm 5 --throwers 2 --every-client --spread 1': { spread: 1 },
  // Stages set the length of a run, and its most clients or sprites.
  'throw 5 --rate 10 --stage 30s:5000 -s 1m:20': { rate: 5000, clients: 5, time: 90 },
  'throw 5 --stage 1s:3': { throwing: 'rate', rate: 3 },
  'park 5 -s 1s:300 -s 1s:0': { throwing: 'none', clients: 300, time: 2 },
  // Bounds have a unit.
  'throw 10 --p99 5ms --max 1.5s --p50 800us': { p99: 5, max: 1500, p50: 0.8 },
  'throw 10 --p99.9 20ms --missing 0 --memory 1.5G': { 'p99.9': 20, missing: 0, memory: 1.5e9 },
  'throw 10 --stall 5ms --status-port 9': { stall: 5 },
  'storm 5 --back 5s': { back: 5000 },
  'park 5': { tls: false, host: '127.0.0.1', port: 8080 },
  'park 5 --url http://[::1]:8080': { tls: false, host: '::1', port: 8080 },
  'park 5 --url https://a.example': { tls: true, host: 'a.example', port: 443, transientPort: 443 }
};

t.test('what is read', async (t) => {
  for (const [line, options] of Object.entries(READ)) t.match(parsed(line), options, line);
  const { target } = resultWith(parsed('park 5 --url http://[::1]:8080'), {});
  t.match(target, { host: '[::1]', port: 8080 }, 'what a report shows');
});

/** Refused command lines, by the start of the message. */
const REFUSED = {
  'no command "thro": park, throw, latency, storm': ['thro 1'],
  'park N: N must be a whole number': ['park'],
  '--port 99999: must be a whole number': ['park 5 --port 99999'],
  'park throws nothing': ['park 5 --rate 1'],
  '6 throwers of 5 clients: at most all of them': ['throw 5 --throwers 6'],
  'there is no option --nonsense': ['park 5 --nonsense'],
  // Options that a command does not have, or that contradict each other.
  '--probes is an option of latency': ['throw 5 --probes 2'],
  '--probe-rate is an option of latency': ['park 5 --probe-rate 2'],
  '--spread is an option of storm': ['throw 5 --spread 2'],
  '--rate-max is an option of agent': ['throw 5 --rate-max 2'],
  '--worse is an option of compare': ['park 5 --worse 5'],
  '--rate is no option of compare': ['compare a b --rate 5'],
  'compare A B: two files': ['compare a'],
  '--every-client is of the closed loop': [
    ...['throw 5 --rate 2 --every-client', 'park 5 --every-client']
  ],
  '--insecure believes any certificate, and --ca': [
    'park 5 --url https://a --ca b --insecure',
    'agent https://a/play/b --ca b --insecure'
  ],
  '--ca and --insecure are about TLS': ['park 5 --insecure'],
  'agent URL: the address of an arena, without a user': [
    ...['http://u:p@a/', 'https://u@a/play/b', 'ftp://a/play/b', 'mailto:a@b', 'http://a/b', 'a']
  ].map((url) => `agent ${url}`),
  '--url includes host and port': ['park 5 --url https://a --port 1'],
  '--url .*: must be http:// or https://, a host': [
    ...['a.example', 'ftp://a', 'https://a/b', 'https://u@a', 'https://a?b']
  ].map((url) => `park 5 --url ${url}`),
  // Options of other load testers.
  '--time 3x: must be a time from 0.1 to 604800 seconds, as 30, 30s, 1m30s or 2h': [
    'throw 5 -d 3x'
  ],
  'there is no option --vus: the clients are the number after the command': ['throw 5 --vus 9'],
  'there is no option -c: the clients are': ['throw 5 -c 9'],
  'there is no option --rps: --rate is in sprites a second': ['throw 5 --rps 9'],
  'there is no option -n: a run ends by --time': ['throw 5 -n 9'],
  'there is no option -t: --processes is for engines': ['throw 5 -t 9'],
  'there is no option --duratoin; did you mean --duration?': ['throw 5 --duratoin 9'],
  'there is no option --out: --report FILE': ['throw 5 --out x'],
  // Stages.
  '--stage is an option of park and throw': ['storm 5 --stage 1s:3', 'latency 5 --stage 1s:3'],
  '--time: omit it with --stage': ['throw 5 --stage 1s:3 --time 3'],
  '--stage 1s: must be a time and the number to reach by then, as 30s:5000': ['throw 5 --stage 1s'],
  '--stage 1s:1e9: must be a time': ['throw 5 --stage 1s:1e9'],
  '--stage …:10000001: the number must be a number from 0 to 10000000': [
    'throw 5 --stage 1s:10000001'
  ],
  '--stage …:1.5: the number must be a whole number': ['park 5 --stage 1s:1.5'],
  '--stage: all together take from 0.1 s to 604800 s, not 0': ['park 5 --stage 0s:9'],
  '--stage: all together take from 0.1 s': ['park 5 --stage 99h:9 --stage 99h:9'],
  '--stage: every target is 0': ['throw 5 --stage 9s:0'],
  '--stage 101 times: there may be 100 stages': [`park 5${' --stage 1s:1'.repeat(101)}`],
  // Bounds.
  '--p99 .*: must be a time with its unit, as 800us': [
    ...['5', 'ms', '-5ms', '5h'].map((bad) => `throw 10 --p99=${bad}`)
  ],
  '--missing 1.5: must be a whole number': ['throw 10 --missing 1.5'],
  '--p99: this park throws nothing': ['park 5 --p99 5ms'],
  '--back: this throw is no storm': ['throw 10 --back 5s'],
  '--stall: this throw has no --status-port': ['throw 10 --stall 5ms'],
  '--cpu: this storm has no sprites a second': ['storm 5 --rate 5 --cpu 5us']
};

t.test('what is refused', async (t) => {
  for (const [words, lines] of Object.entries(REFUSED)) {
    const message = new RegExp(`^${words.replaceAll('?', '\\?')}`);
    for (const line of lines) t.throws(() => parsed(line), { message }, line.slice(0, 80));
  }
  t.throws(() => parse(['throw', '10', '--p99=5 ms']), { message: /^--p99 5 ms: must be a time/ });
});
