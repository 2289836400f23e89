import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';

/**
 * Makes a certificate that signs itself, in `NAME.cert` and `NAME.key`.
 *
 * @param {string} dir
 * @param {string} name
 * @returns {{'tls-cert': string, 'tls-key': string}} the options that use it
 */
export function certificate(dir, name = 'localhost') {
  const key = path.join(dir, `${name}.key`);
  const cert = path.join(dir, `${name}.cert`);
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const { status, stderr } = spawnSync(
    'openssl',
    ['req', '-x509', ...kind, '-days', '2', '-subj', `/CN=${name}`, '-keyout', key, '-out', cert],
    { encoding: 'utf8' }
  );
  assert.equal(status, 0, stderr);
  return { 'tls-cert': cert, 'tls-key': key };
}
