import { createRequire } from 'node:module';

import { builtFile, ENGINE } from './build.js';
import { readAuthorities } from './target.js';

/**
 * The engine for TLS: native/swarm inside this process, with the OpenSSL of this Node. It is started as
 * `node tls-engine.js TRUSTED OPTION …`, and has the same protocol with its parent as the plain engine. TRUSTED is
 * a file of PEM certificates, `known` for Node's own authorities, or `any`.
 */

const [trusted, ...options] = process.argv.slice(2);
const { run } = createRequire(import.meta.url)(builtFile(ENGINE, 'swarm_tls.node'));
const authorities =
  trusted === 'any' ? '' : readAuthorities(trusted === 'known' ? undefined : trusted);
process.exit(run(options, authorities));
