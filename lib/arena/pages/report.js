/** The modules that make a report. They load with the panel, since a browser caches the failure of a later import. */

export { fill } from '../swarm/page-parts.js';
export { contentOf } from '../swarm/report-body.js';
