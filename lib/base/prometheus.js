import { createRequire } from 'node:module';

/**
 * The parts of prom-client that are used here, each from its own file. Its index would load all others as well, and
 * OpenTelemetry's API for exemplars that nobody here asks for, at each start.
 */

// Each `import` of a file in CommonJS costs ten times as much as its `require`.
const require = createRequire(import.meta.url);
const part = (name) => require(`prom-client/lib/${name}.js`);

export const Counter = part('counter');
export const Gauge = part('gauge');
export const Registry = part('registry');

export const collectEventLoopLag = part('metrics/eventLoopLag');
export const collectGarbageCollector = part('metrics/gc');
export const collectHeapSize = part('metrics/heapSizeAndUsed');
export const collectHeapSpaces = part('metrics/heapSpacesSizeAndUsed');
export const collectMemory = part('metrics/osMemoryHeap');
export const collectMostDescriptors = part('metrics/processMaxFileDescriptors');
export const collectStartTime = part('metrics/processStartTime');
export const collectVersion = part('metrics/version');
