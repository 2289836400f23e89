import { readFileSync } from 'node:fs';

/**
 * @param {number} pid
 * @returns {number} resident bytes of a process and its children, as the kernel accounts for them
 */
export function resident(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ');
  return [pid, ...children.filter(Boolean)]
    .map((one) => readFileSync(`/proc/${one}/status`, 'latin1'))
    .reduce((sum, status) => sum + Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024, 0);
}
