# How everything that node-gyp builds here is compiled: the addon, the swarm, the tests' addon and the benchmarks'
# programs include it.
{
  'target_defaults': {
    'cflags': [
      '-Wall', '-Wextra', '-Werror', '-fno-strict-aliasing',
      '-isystem', '<!(node -p "require(\'path\').dirname(require.resolve(\'nan\'))")',
    ],
    # The same words for every Node, so that a release compiles once what includes nothing of Node's: 2a is 20.
    'cflags_cc': ['-std=gnu++2a'],
    'cflags_cc!': [
      '-std=gnu++17', '-std=gnu++20', '-fno-rtti', '-fno-exceptions', '-fno-strict-aliasing',
    ],
    'include_dirs': ['.'],
    # Node's own -O3 would come last and be the one that applies. It takes the compiler a tenth longer and makes no sprite
    # faster: 344 ns in the pool and 818 behind a relay by -O2, 337 and 824 by -O3, each the fastest round of 14 runs of
    # npm run bench:pool with 20,000 clients.
    'configurations': {
      'Release': {'cflags!': ['-O3'], 'cflags': ['-O2']},
    },
  },
}
