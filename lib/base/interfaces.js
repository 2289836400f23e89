import { networkInterfaces } from 'node:os';

/**
 * This machine's network interfaces, as node:os has them. None where the system does not tell them: Node asks by a
 * netlink socket, which a service whose address families are restricted may not open (EAFNOSUPPORT).
 *
 * @returns {ReturnType<typeof networkInterfaces>}
 */
export function interfacesHere() {
  try {
    return networkInterfaces();
  } catch (error) {
    if (error.code !== 'ERR_SYSTEM_ERROR') throw error;
    return {};
  }
}
