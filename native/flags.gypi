# How everything that node-gyp builds here is compiled: the addon, the swarm, the tests' addon and the benchmarks'
# programs include it.
{
  'target_defaults': {
    'cflags': [
      '-Wall', '-Wextra', '-Werror',
      '-isystem', '<!(node -p "require(\'path\').dirname(require.resolve(\'nan\'))")',
    ],
    'cflags_cc': ['-std=gnu++20'],
    'cflags_cc!': ['-std=gnu++17', '-fno-rtti', '-fno-exceptions'],
    'include_dirs': ['.'],
    'configurations': {
      'Release': {'cflags!': ['-O3'], 'cflags': ['-O2']},
    },
  },
}
