import { Broker } from '../../lib/world/broker.js';
import { Membership } from '../../lib/world/membership.js';

/**
 * A member of a world in a process of its own, so that a test can stop and kill it. Its options come as JSON, its views
 * go out as JSON lines.
 */

const { name, servers, lease, rows } = JSON.parse(process.argv[2]);
const silent = { info() {}, warn() {}, error() {} };
const broker = new Broker({ servers, name });
const membership = new Membership({
  name,
  lease,
  store: broker,
  describe: () => ({ rows }),
  log: silent,
  changed(self) {
    const { state, problem, epoch, ring } = self.view();
    const names = ring.members.map((member) => member.name).join('');
    process.stdout.write(
      `${JSON.stringify({ state, problem: problem?.code, epoch, ring: names })}\n`
    );
  }
});
membership.start();
process.on('SIGTERM', () => membership.leave());
