import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Makes a self-signed certificate in `NAME.cert` and `NAME.key`.
 *
 * @param {string} dir
 * @param {string} [name] its common name
 * @param {string[]} [others] alternative names as openssl writes them: `DNS:localhost`, `IP:127.0.0.1`
 * @returns {{'tls-cert': string, 'tls-key': string}} the options that use it
 */
export function certificate(dir, name = 'localhost', others = []) {
  const key = path.join(dir, `${name}.key`);
  const cert = path.join(dir, `${name}.cert`);
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`];
  if (others.length > 0) subject.push('-addext', `subjectAltName=${others.join(',')}`);
  const { status, stderr } = spawnSync(
    'openssl',
    ['req', '-x509', ...kind, '-days', '2', ...subject, '-keyout', key, '-out', cert],
    { encoding: 'utf8' }
  );
  assert.equal(status, 0, stderr);
  return { 'tls-cert': cert, 'tls-key': key };
}

/**
 * Makes the same, and writes both to one file, as HAProxy reads them.
 *
 * @returns {string} that file, `both.pem`
 */
export function certificateWithKey(dir, ...more) {
  const file = path.join(dir, 'both.pem');
  const parts = Object.values(certificate(dir, ...more));
  writeFileSync(file, parts.map((part) => readFileSync(part)).join(''));
  return file;
}
