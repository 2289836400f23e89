import { createAccount, createOperator, createUser } from '@nats-io/nkeys';

/**
 * Credentials as NATS's tools make them: an operator, an account with JetStream, and a file of one user's. JWTs are
 * signed by the keys themselves (alg ed25519-nkey).
 */

const encode = (value) => Buffer.from(value).toString('base64url');

/** Signs what is said of a key. */
function sign({ issuer, subject, name, nats }) {
  const header = { typ: 'JWT', alg: 'ed25519-nkey' };
  const claims = {
    jti: name,
    iat: 1,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats: { version: 2, ...nats }
  };
  const text = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(claims))}`;
  return `${text}.${encode(issuer.sign(Buffer.from(text)))}`;
}

/** @returns {{config: string, credentials: string}} of a NATS server, and the text of a user's file */
export function createCredentials() {
  const [operator, system, account, user] = [
    ...[createOperator(), createAccount()],
    ...[createAccount(), createUser()]
  ];
  const free = { subs: -1, data: -1, payload: -1 };
  const limits = {
    ...{ ...free, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
    ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
  };
  const operatorJwt = sign({
    ...{ issuer: operator, subject: operator, name: 'operator' },
    nats: { type: 'operator' }
  });
  const accountJwt = sign({
    ...{ issuer: operator, subject: account, name: 'sprites' },
    nats: { type: 'account', limits }
  });
  const systemJwt = sign({
    ...{ issuer: operator, subject: system, name: 'system' },
    nats: { type: 'account', limits: { ...limits, mem_storage: 0, disk_storage: 0 } }
  });
  const userJwt = sign({
    ...{ issuer: account, subject: user, name: 'server' },
    nats: { type: 'user', pub: {}, sub: {}, ...free }
  });
  const seed = Buffer.from(user.getSeed()).toString();
  return {
    config: `operator: ${operatorJwt}\nresolver: MEMORY\nsystem_account: ${system.getPublicKey()}\nresolver_preload: { ${account.getPublicKey()}: ${accountJwt}, ${system.getPublicKey()}: ${systemJwt} }`,
    credentials: `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`
  };
}
