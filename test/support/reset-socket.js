/**
 * Ends a TCP connection by a reset, at any moment.
 *
 * Tests never call Node's `resetAndDestroy` (eslint.config.js forbids it). While an `end` of the same socket is under way
 * it closes nothing: libuv does not reset a handle whose shutdown is pending (`uv_tcp_close_reset` returns UV_EINVAL), and
 * Node counts the handle as closed all the same (`TCPWrap::Reset`). A process that then comes to its end waits for that
 * handle for ever (`Environment::CleanupHandles`), at 100% CPU. So it is in Node 20.20, 22.23, 24.21 and 26.10:
 *
 *     socket.end();
 *     socket.resetAndDestroy(); // 'error' EINVAL, never 'close', and the process does not end
 *
 * A shutdown is pending from when all is written until the loop's next turn. To the peer it makes no difference then
 * whether the socket is reset or closed: its end has been said first.
 *
 * @param {import('node:net').Socket} socket whose end no other stream begins, as TLS over it does
 */
export function resetSocket(socket) {
  const { connecting, writableEnded, writableFinished, writableLength } = socket;
  const isShuttingDown = writableEnded && !writableFinished && writableLength === 0;
  if (connecting) socket.once('connect', () => resetSocket(socket));
  else if (isShuttingDown) socket.destroy();
  // eslint-disable-next-line no-restricted-properties
  else socket.resetAndDestroy();
}
