/**
 * Loaded first in the process of each test file (.taprc). tap has every process, and each Node that one starts, write
 * down which files it loads, by hooks of the module loader in a thread of their own, and read the source maps of tap itself.
 * That is for coverage and for `tap --changed`; without coverage it is 0.3 s of CPU a process for nothing.
 */

const Module = require('node:module');

/** What has tap's hooks loaded, in NODE_OPTIONS and in a process's own options. */
const LOADER = /^--(enable-source-maps|(import|require)=.*(@tapjs|plain-process))/;

if (process.env.TAP_DISABLE_COVERAGE === '1') {
  for (const name of ['register', 'registerHooks']) if (name in Module) Module[name] = () => {};
  process.setSourceMapsEnabled(false);
  process.setSourceMapsEnabled = () => {};
  // tap's own switch: nothing is registered in the process of that number.
  process.env.__TAPJS_PROCESSINFO_TESTING_NO_REGISTER__ = String(process.pid);
  // Children are started as their users start them.
  process.execArgv = process.execArgv.filter((option) => !LOADER.test(option));
  const kept = (process.env.NODE_OPTIONS ?? '').split(' ').filter((option) => {
    return !LOADER.test(option.replaceAll('"', ''));
  });
  process.env.NODE_OPTIONS = kept.join(' ');
}
