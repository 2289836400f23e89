import { createRequire } from 'node:module';

import { builtFile, ENGINE } from './build.js';
import { authoritiesIn } from './target.js';

/**
 * The engine that speaks TLS: native/swarm inside this process, by the OpenSSL of this Node. It is
 * started as `node tls-engine.js TRUSTED OPTION …` and speaks with its parent as the plain one does. TRUSTED is
 * a file of PEM certificates, `known` for the authorities that Node knows, or `any`.
 */

const [trusted, ...options] = process.argv.slice(2);
const { run } = createRequire(import.meta.url)(builtFile(ENGINE, 'swarm_tls.node'));
const authorities =
  trusted === 'any' ? '' : authoritiesIn(trusted === 'known' ? undefined : trusted);
process.exit(run(options, authorities));
