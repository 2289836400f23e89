import { readFileSync } from 'node:fs';

import t from 'tap';

import { shareableUrls, lanAddresses } from '../../lib/base/lan-addresses.js';
import { check, hostReader, parseSysctl, printCheck } from '../../lib/operator/host-check.js';

const CONF = readFileSync(new URL('../../deploy/sysctl.conf', import.meta.url), 'utf8');
const LINES = parseSysctl(CONF);

/** Files of a host with 16 GB and Debian's defaults. */
const UNTUNED = {
  '/proc/self/limits':
    'Limit                     Soft Limit           Hard Limit           Units\n' +
    'Max open files            1024                 1048576              files     \n',
  '/proc/meminfo':
    'MemTotal:       16301284 kB\nMemFree:        15000000 kB\n' + 'MemAvailable:   15500000 kB\n',
  '/proc/self/cgroup': '0::/system.slice/sprites.service\n',
  '/sys/fs/cgroup/system.slice/sprites.service/memory.max': 'max\n',
  '/proc/sys/fs/nr_open': '1048576\n',
  '/proc/sys/fs/file-max': '1620000\n',
  '/proc/sys/fs/file-nr': '1200\t0\t1620000\n',
  '/proc/sys/fs/epoll/max_user_watches': '3600000\n',
  '/proc/sys/net/core/somaxconn': '4096\n',
  '/proc/sys/net/core/netdev_max_backlog': '1000\n',
  '/proc/sys/net/ipv4/tcp_max_syn_backlog': '1024\n',
  '/proc/sys/net/ipv4/tcp_syncookies': '0\n',
  '/proc/sys/net/ipv4/tcp_mem': '190000\t253000\t380000\n',
  '/proc/sys/net/ipv4/tcp_rmem': '4096\t131072\t6291456\n',
  '/proc/sys/net/ipv4/tcp_wmem': '4096\t16384\t4194304\n',
  '/proc/sys/net/ipv4/tcp_slow_start_after_idle': '1\n',
  '/proc/sys/net/ipv4/tcp_max_tw_buckets': '262144\n',
  '/proc/sys/net/ipv4/ip_local_port_range': '32768\t60999\n',
  '/proc/sys/net/ipv4/ip_local_reserved_ports': '\n',
  '/proc/sys/vm/min_free_kbytes': '67584\n',
  '/proc/sys/vm/swappiness': '60\n'
};

/** The same host with every line of deploy/sysctl.conf loaded, as the kernel shows it. */
const TUNED = {
  ...UNTUNED,
  ...Object.fromEntries(
    [...LINES].map(([name, value]) => [
      `/proc/sys/${name.replaceAll('.', '/')}`,
      `${value.replaceAll(' ', '\t')}\n`
    ])
  ),
  '/proc/sys/net/ipv4/ip_local_reserved_ports': '8080-8081,8443,9464\n'
};

const readerOf = (files) => ({ read: (path) => files[path] });
const checkHost = (clients, files, settings = CONF) =>
  check(clients, { reader: readerOf(files), settings });
const failingNames = (result) =>
  result.findings.filter(({ state }) => state === 'no').map(({ name }) => name);
const findingOf = (result, name) => result.findings.find((finding) => finding.name === name);

function printedLines(result) {
  const lines = [];
  const code = printCheck(result, (line) => lines.push(line));
  return { code, lines, text: lines.join('\n') };
}

t.test('a million on an untuned host names every line of deploy/sysctl.conf', async (t) => {
  const result = checkHost(1e6, UNTUNED);
  t.same(
    failingNames(result).sort(),
    [...LINES.keys()].sort(),
    'and nothing else: files are enough'
  );
  const { code, text } = printedLines(result);
  t.equal(code, 1);
  for (const name of LINES.keys()) t.match(text, `sudo sysctl -w ${name}=`, name);
  t.match(text, 'sudo cp deploy/sysctl.conf /etc/sysctl.d/');
  const from = process.cwd();
  process.chdir('/');
  t.teardown(() => process.chdir(from));
  const [, file] = /sudo cp (\S+) \/etc/.exec(printedLines(result).text);
  t.equal(readFileSync(file, 'utf8'), CONF, 'wherever it is asked from');
  process.chdir(from);
});

t.test('the disk of a state has room for it, or is named', async (t) => {
  const seen = [];
  const on = (bytes) => {
    const free = (folder) => {
      seen.push(folder);
      return bytes;
    };
    const reader = { ...readerOf(TUNED), free };
    return check(1e6, { reader, settings: CONF, state: '/srv/sprites/state', journalBytes: 1e8 });
  };
  t.same(failingNames(on(320e6)), []);
  const tight = on(319e6);
  t.same(failingNames(tight), ['room on the disk of --state']);
  t.match(printedLines(tight).text, 'df -h /srv/sprites');
  t.equal(printedLines(tight).code, 1);
  t.same([...new Set(seen)], ['/srv/sprites']);
  t.equal(findingOf(on(undefined), 'room on the disk of --state').state, 'unseen');
  t.notOk(
    findingOf(checkHost(1e6, TUNED), 'room on the disk of --state'),
    'without a state nothing'
  );
});

t.test('each line missing alone is named alone, and its command mends it', async (t) => {
  for (const name of LINES.keys()) {
    const path = `/proc/sys/${name.replaceAll('.', '/')}`;
    const result = checkHost(1e6, { ...TUNED, [path]: UNTUNED[path] });
    t.same(failingNames(result), [name], name);
    const [, value] = /sysctl -w \S+?='?([^']+)'?$/.exec(findingOf(result, name).fix);
    t.equal(
      checkHost(1e6, { ...TUNED, [path]: `${value}\n` }).ok,
      true,
      `${name}: mended by ${value}`
    );
  }
});

t.test('ports that are reserved already stay so, as they are written', async (t) => {
  const path = '/proc/sys/net/ipv4/ip_local_reserved_ports';
  const result = checkHost(1e6, { ...TUNED, [path]: '8081,30000-32767\n' });
  t.equal(
    findingOf(result, 'net.ipv4.ip_local_reserved_ports').fix,
    "sudo sysctl -w net.ipv4.ip_local_reserved_ports='8081,30000-32767,8080,8443,9464'"
  );
});

t.test('a million on a tuned host: nothing stands in the way', async (t) => {
  const result = checkHost(1e6, TUNED);
  t.same(failingNames(result), []);
  t.equal(result.ok, true);
  t.ok(result.room >= 1e6);
  const { code, lines } = printedLines(result);
  t.equal(code, 0);
  t.match(lines[0], /1,000,000 clients on this host: nothing stands in the way/);
});

t.test('settings that scale are asked for as N needs them', async (t) => {
  const result = checkHost(200_000, UNTUNED);
  t.equal(findingOf(result, 'net.core.somaxconn').need, '13107');
  t.match(findingOf(result, 'net.core.somaxconn').fix, 'net.core.somaxconn=13107');
  t.equal(findingOf(result, 'fs.nr_open').state, 'ok', 'a limit of 1,048,576 files is enough');
  t.equal(findingOf(result, 'fs.file-max').state, 'ok');
  t.equal(findingOf(result, 'net.ipv4.tcp_mem').state, 'ok', '380,000 pages are one a client');
  t.equal(
    findingOf(checkHost(90_000, UNTUNED), 'vm.swappiness'),
    undefined,
    'and some need a crowd'
  );
});

t.test('above a million the needs go on growing', async (t) => {
  const result = checkHost(2_000_000, TUNED);
  t.equal(findingOf(result, 'net.core.somaxconn').need, '131070');
  t.ok(failingNames(result).includes('files of this process'));
  const files = { '/proc/self/limits': 'Max open files unlimited unlimited files\n' };
  const many = checkHost(9_000_000, { ...TUNED, ...files });
  for (const name of ['net.core.somaxconn', 'fs.nr_open', 'fs.epoll.max_user_watches']) {
    t.ok(failingNames(many).includes(name), `${name}: what the file says is for a million`);
  }
});

t.test('tcp_mem for a small host is brought down to its memory, not to the file', async (t) => {
  const result = checkHost(1e6, {
    ...UNTUNED,
    '/proc/meminfo': 'MemTotal:        8000000 kB\nMemAvailable:    7500000 kB\n'
  });
  const [low, pressure, most] = findingOf(result, 'net.ipv4.tcp_mem').need.split(' ').map(Number);
  t.equal(most, Math.floor((0.4 * 8_000_000) / 4));
  t.ok(low < pressure && pressure < most);
});

const fileLimitOf = (hard) => ({
  '/proc/self/limits': `Max open files            1024     ${hard}     files\n`
});
const conntrackMaxOf = (most) => ({ '/proc/sys/net/netfilter/nf_conntrack_max': `${most}\n` });
const groupLimitOf = (group, most) => ({ [`/sys/fs/cgroup${group}memory.max`]: `${most}\n` });
const UNIT_GROUP = '/system.slice/sprites.service/';
const IN_CONTAINER = { '/proc/self/cgroup': '0::/\n' };
const CGROUP_V1 = {
  '/proc/self/cgroup': '4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n'
};
const CGROUP_V1_LIMIT = '/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes';
const OWN_SYSCTL_CONF = 'kernel.pid_max = 4194304\n-net.core.foo = a b\n';
const ownSettings = (pids, foo) => ({
  '/proc/sys/kernel/pid_max': `${pids}\n`,
  '/proc/sys/net/core/foo': `${foo}\n`
});

const FILES = 'files of this process';
const AVAILABLE = 'memory available';
const GROUP = 'memory limit of the control group';
const CONNTRACK_MAX = 'net.netfilter.nf_conntrack_max';

const LITTLE_MEMORY = { '/proc/meminfo': 'MemTotal: 16301284 kB\nMemAvailable:    2000000 kB\n' };
const MANY_OPEN_FILES = { '/proc/sys/fs/file-nr': '1500000\t0\t1620000\n' };

/** Checks a tuned host with some files replaced. */
const checkTuned = (clients, other, settings) =>
  checkHost(clients, { ...TUNED, ...other }, settings);

t.test('what stands in the way', async (t) => {
  for (const [what, clients, other, name, settings] of [
    ['a limit of files', 1e6, fileLimitOf(20_000), FILES],
    ['which counts spare ones', 100_000, fileLimitOf(100_000), FILES],
    ['and no more', 100_000, fileLimitOf(100_128)],
    ['no limit', 1e6, fileLimitOf('unlimited')],
    ['too little memory', 1e6, LITTLE_MEMORY, AVAILABLE],
    ['a control group', 1e6, groupLimitOf(UNIT_GROUP, 1073741824), GROUP],
    ['which has room for fewer', 100_000, groupLimitOf(UNIT_GROUP, 1073741824)],
    ['a group above it', 1e6, groupLimitOf('/system.slice/', 1000000000), GROUP],
    ['in a container the root', 1e6, { ...IN_CONTAINER, ...groupLimitOf('/', 536870912) }, GROUP],
    ['a huge number, which is no limit', 1e6, CGROUP_V1],
    ['a first version', 1e6, { ...CGROUP_V1, [CGROUP_V1_LIMIT]: '268435456\n' }, GROUP],
    ['a firewall that tracks connections', 1e6, conntrackMaxOf(262144), CONNTRACK_MAX],
    ['by the value that deploy/sysctl.conf names', 1e6, conntrackMaxOf(1310720)],
    ['or for fewer', 100_000, conntrackMaxOf(262144)],
    [
      'a line of the file without a rule',
      10,
      ownSettings(32768, 'a b'),
      'kernel.pid_max',
      OWN_SYSCTL_CONF
    ],
    ['which is held to its value', 10, ownSettings(4194304, 'a b'), undefined, OWN_SYSCTL_CONF],
    ['number by number at least', 10, ownSettings(5000000, 'a c'), 'net.core.foo', OWN_SYSCTL_CONF]
  ]) {
    const result = checkTuned(clients, other, settings);
    t.same(failingNames(result), name ? [name] : [], what);
    t.equal(printedLines(result).code, name ? 1 : 0, what);
  }
  const shows = (clients, files) => failingNames(checkHost(clients, files));
  t.same(shows(1000, { ...UNTUNED, '/proc/sys/net/ipv4/tcp_syncookies': '1\n' }), []);
  t.same(shows(1e6, {}), [], 'a host that shows nothing');
  t.equal(checkHost(1e6, {}).room, Infinity);
  t.ok(
    shows(200_000, { ...UNTUNED, ...MANY_OPEN_FILES }).includes('fs.file-max'),
    'files that others have'
  );
  t.equal(checkHost(200_000, { ...UNTUNED, ...MANY_OPEN_FILES }).room, 1620000 - 1500000 - 128);
});

t.test('each says what there is, what it takes, and how many it takes as it is', async (t) => {
  const files = checkTuned(1e6, fileLimitOf(20_000));
  t.equal(files.room, 20000 - 128);
  t.match(printedLines(files).text, /ulimit -n 1000128/);
  t.match(
    printedLines(files).text,
    /this host takes 19,872 clients: files of this process says so/
  );
  const of = (other, options) =>
    check(100_000, { reader: readerOf({ ...TUNED, ...other }), settings: CONF, ...options });
  const workers = of(fileLimitOf(100_128), { workers: 2 });
  t.equal(workers.room, 99_968, 'workers have files of their own');
  t.match(findingOf(workers, FILES).fix, 'ulimit -n 100160');
  const memory = checkTuned(1e6, LITTLE_MEMORY);
  t.match(findingOf(memory, AVAILABLE), { have: '2.0 GB', need: '4.3 GB' });
  t.match(findingOf(memory, AVAILABLE).fix, `--capacity ${memory.room}`);
  t.ok(memory.room > 400_000 && memory.room < 500_000);
  const full = of({}, { mailboxMemory: 16 * 2 ** 30 });
  t.match(findingOf(full, AVAILABLE).need, '17.7 GB', 'mailboxes as large as they may be');
  for (const group of [UNIT_GROUP, '/system.slice/']) {
    t.match(
      findingOf(checkTuned(1e6, groupLimitOf(group, 1e9)), GROUP).fix,
      `/sys/fs/cgroup${group}memory.max`
    );
  }
  t.match(findingOf(checkTuned(1e6, conntrackMaxOf(262144)), CONNTRACK_MAX).fix, /=1250128 /);
});

t.test('in a container that hides settings, says so and does not fail for them', async (t) => {
  const hidden = { ...TUNED };
  delete hidden['/proc/sys/net/core/netdev_max_backlog'];
  delete hidden['/proc/sys/net/ipv4/tcp_mem'];
  const result = checkHost(1e6, hidden);
  t.equal(result.ok, true);
  t.equal(findingOf(result, 'net.ipv4.tcp_mem').state, 'unseen');
  t.match(printedLines(result).text, /\?\? {2}net\.ipv4\.tcp_mem +not to be seen from here, needs/);
});

t.test('numbers that are no number of clients are refused', async (t) => {
  for (const clients of [0, -1, 1.5, NaN, Infinity, 2 ** 60]) {
    t.throws(() => check(clients, { reader: readerOf({}) }), RangeError, String(clients));
  }
});

t.test('looks at the real host, whatever it is', async (t) => {
  const result = check(10);
  t.ok(findingOf(result, 'files of this process'));
  t.ok(result.findings.length > 3);
  t.equal(hostReader.read('/proc/sys/no/such/setting'), undefined);
});

t.test('the settings file can be read by every loader', async (t) => {
  for (const line of CONF.split('\n')) {
    t.ok(line === '' || line.startsWith('#') || /^[\w./-]+ = [\d ,-]+$/.test(line), line);
  }
  t.ok(LINES.size >= 15);
});

const v4 = (address, internal = false) => ({ address, family: 'IPv4', internal });
const INTERFACES = {
  lo: [v4('127.0.0.1', true)],
  docker0: [v4('172.17.0.1')],
  eth1: [v4('203.0.113.7'), { address: 'fe80::1', family: 'IPv6', internal: false }],
  wlan0: [v4('192.168.1.20')],
  usb0: [v4('169.254.3.4')]
};

t.test('the addresses of this machine, a phone’s network first', async (t) => {
  const all = ['192.168.1.20', '203.0.113.7', '172.17.0.1'];
  t.same(lanAddresses('0.0.0.0', INTERFACES), all);
  t.same(lanAddresses('::', INTERFACES), all);
  t.same(lanAddresses('10.0.0.5', INTERFACES), ['10.0.0.5'], 'it listens on that one only');
  for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', '::1']) {
    t.same(lanAddresses(host, INTERFACES), [], host);
  }
  t.same(lanAddresses('0.0.0.0', {}), [], 'in no network');
  t.ok(Array.isArray(lanAddresses('0.0.0.0')), 'and those this machine has');
});

t.test('only clients on this machine learn them', async (t) => {
  const request = (host, address, headers = {}) => ({
    ...{ address, secure: false },
    headers: { host, ...headers }
  });
  const urls = ['http://192.168.1.20:8080/', 'http://203.0.113.7:8080/', 'http://172.17.0.1:8080/'];
  const urlsFor = (...args) => shareableUrls(request(...args), '0.0.0.0', INTERFACES);
  for (const [host, remote] of [
    ['localhost:8080', '127.0.0.1'],
    ['127.0.0.1:8080', '::ffff:127.0.0.1'],
    ['[::1]:8080', '::1']
  ]) {
    t.same(urlsFor(host, remote), urls, `${host} ${remote}`);
  }
  t.same(urlsFor('localhost:8080', '192.168.1.77'), [], 'a stranger who lies about the host');
  t.same(
    urlsFor('torus.example', '127.0.0.1'),
    [],
    'a proxy on this machine, or DNS that was rebound'
  );
  t.same(urlsFor(undefined, '127.0.0.1'), []);
  t.same(urlsFor('localhost:8080', undefined), [], 'a connection that is gone');
  const site = (name) => ({ 'sec-fetch-site': name });
  t.same(urlsFor('localhost:8080', '127.0.0.1', site('cross-site')), [], 'another site');
  t.same(urlsFor('localhost:8080', '127.0.0.1', site('same-origin')), urls);
  const tls = { ...request('localhost:8443', '127.0.0.1'), secure: true };
  t.same(shareableUrls(tls, '10.0.0.5', INTERFACES), ['https://10.0.0.5:8443/']);
  t.same(shareableUrls(request('localhost', '::1'), 'fd00::5', {}), ['http://[fd00::5]/']);
});
