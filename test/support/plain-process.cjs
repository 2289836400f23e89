/**
 * Loaded first in the process of each test file (.taprc). tap makes every process, and each Node child of it, record
 * its loaded files, by hooks of the module loader in a further thread, and read tap's own source maps. Coverage and
 * `tap --changed` need that. Without coverage it wastes 0.3 s of CPU a process.
 */

const Module = require('node:module');

/** The options that load tap's hooks, in NODE_OPTIONS and in a process's own options. */
const LOADER = /^--(enable-source-maps|(import|require)=.*(@tapjs|plain-process))/;

if (process.env.TAP_DISABLE_COVERAGE === '1') {
  for (const name of ['register', 'registerHooks']) if (name in Module) Module[name] = () => {};
  process.setSourceMapsEnabled(false);
  process.setSourceMapsEnabled = () => {};
  // tap's own switch: tap registers nothing in the process with this id.
  process.env.__TAPJS_PROCESSINFO_TESTING_NO_REGISTER__ = String(process.pid);
  // Children start without tap's options.
  process.execArgv = process.execArgv.filter((option) => !LOADER.test(option));
  const kept = (process.env.NODE_OPTIONS ?? '').split(' ').filter((option) => {
    return !LOADER.test(option.replaceAll('"', ''));
  });
  process.env.NODE_OPTIONS = kept.join(' ');
}
