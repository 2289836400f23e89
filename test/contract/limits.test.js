import t from 'tap';

import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { contract } from '../support/server.js';
import { until } from '../support/until.js';

/** A hot request that needs no join. */
const LEAVE = request('POST', '/leave/00000000-0000-4000-8000-000000000000');

const limitOptions = { connections: 4, 'address-connections': 3 };

contract(t, { options: limitOptions }, (t, server) => {
  t.test('connections are bounded, of one source address and of all', async (t) => {
    const at = (address) => Wire.open(server.port, server.host, address);
    const asks = async (wire) => server.read(wire.send(LEAVE));
    // With two workers the last connection may be accepted first.
    const letIn = (count) =>
      until(async () => (await server.adminStatus()).connections === count, `${count} are let in`);
    const refused = async (wire) => {
      // A refused connection's request has no effect.
      wire.send(request('POST', '/join'));
      t.equal(problemOf(await server.read(wire)), 'too-many-connections');
      await wire.closed();
      t.equal(wire.unreadBytes.length, 0, 'one answer and no other');
      await wire.destroy();
    };
    // The connections for /status count for this address too: wait until they are gone.
    await server.untilDisconnected();
    const wires = await Promise.all(Array.from({ length: 3 }, () => server.wire()));
    await letIn(3);
    await refused(await server.wire());
    await letIn(3);
    const elsewhere = await at('127.0.0.2');
    t.equal((await asks(elsewhere)).status, 204, 'another address is still welcome');
    await letIn(4);
    await refused(await at('127.0.0.3'));
    for (const wire of wires)
      t.equal((await asks(wire)).status, 204, 'those that are there are served');
    await Promise.all([...wires, elsewhere].map((wire) => wire.destroy()));
    await server.untilDisconnected();
    const { connectionsRefused, joined } = await server.until(
      ({ connections, heldBytes = 0 }) => connections === 1 && heldBytes === 0
    );
    t.strictSame([connectionsRefused, joined], [2, 0]);
  });
});
