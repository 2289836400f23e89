/** What a panel makes a report with. It comes with the panel: a browser keeps the failure of a later import. */

export { fill } from '../swarm/page-parts.js';
export { contentOf } from '../swarm/report-body.js';
