/**
 * One address that attacks a server in one way, as fast as it can, until it is killed: see attacks.js.
 */
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

import { clientHello, resetSocket } from '../support/http.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string' }, tls: { type: 'string' } }
});

/** An address of its own. */
const FROM = '127.0.6.6';

/**
 * Keeps so many connections open: where one is closed there is another.
 *
 * @param {number} count
 * @param {string} port
 * @param {(socket: import('node:net').Socket) => void} use called with each that is connected
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

/** Sends the same again and again, as long as it is taken. */
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

// What is paused keeps no process alive.
setInterval(() => {}, 1000);

const attacks = {
  /** A request, half of one or none, and a reset. */
  resets() {
    const kinds = ['', 'POST /join HTTP/1.1\r\nContent-Le', `GET /nothing HTTP/1.1\r\n${HEAD}`];
    let times = 0;
    keep(64, values.port, (socket) => {
      times += 1;
      socket.write(kinds[times % kinds.length], () => resetSocket(socket));
    });
  },

  /** Requests that JavaScript handles, without an end, whose answers are read. */
  pipelining() {
    const bytes = Buffer.from(`GET /nothing HTTP/1.1\r\n${HEAD}`.repeat(AHEAD));
    keep(64, values.port, (socket) => {
      socket.on('data', () => {});
      pour(socket, bytes);
    });
  },

  /** The page, asked for many times, and no answer read: the memory for what is sent is the server's alone. */
  'slow readers'() {
    const bytes = Buffer.from(`GET / HTTP/1.1\r\n${HEAD}`.repeat(AHEAD));
    keep(1000, values.port, (socket) => {
      socket.pause();
      socket.write(bytes);
    });
  },

  /** Handshakes up to the server's certificate, which is its work, and no further. */
  handshakes() {
    keep(64, values.tls, (socket) => {
      socket.write(hello);
      socket.once('data', () => resetSocket(socket));
    });
  },

  /** Bodies that come byte by byte, in chunks. */
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
