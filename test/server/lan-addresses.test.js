import t from 'tap';
import { invitations, lanAddresses } from '../../lib/base/lan-addresses.js';

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

t.test('only who sits at this machine learns them', async (t) => {
  const request = (host, address, headers = {}) => ({
    ...{ address, port: 8080, secure: false },
    headers: { host, ...headers }
  });
  const urls = ['http://192.168.1.20:8080/', 'http://203.0.113.7:8080/', 'http://172.17.0.1:8080/'];
  const asked = (...args) => invitations(request(...args), '0.0.0.0', INTERFACES);
  for (const [host, remote] of [
    ['localhost:8080', '127.0.0.1'],
    ['127.0.0.1:8080', '::ffff:127.0.0.1'],
    ['[::1]:8080', '::1'],
    ['localhost', '127.0.0.1']
  ]) {
    t.same(asked(host, remote), urls, `${host} ${remote}`);
  }
  t.same(asked('localhost:8080', '192.168.1.77'), [], 'a stranger who lies about the host');
  t.same(
    asked('torus.example', '127.0.0.1'),
    [],
    'a proxy on this machine, or DNS that was rebound'
  );
  t.same(asked(undefined, '127.0.0.1'), []);
  t.same(asked('localhost:8080', undefined), [], 'a connection that is gone');
  const site = (name) => ({ 'sec-fetch-site': name });
  t.same(asked('localhost:8080', '127.0.0.1', site('cross-site')), [], 'another site');
  t.same(asked('localhost:8080', '127.0.0.1', site('same-origin')), urls);
  const tls = { ...request('localhost:8443', '127.0.0.1'), secure: true };
  t.same(invitations(tls, '10.0.0.5', INTERFACES), ['https://10.0.0.5:8080/']);
  t.same(invitations(request('localhost', '::1'), 'fd00::5', {}), ['http://[fd00::5]:8080/']);
});
