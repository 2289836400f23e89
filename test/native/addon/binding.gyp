{
  'targets': [
    {
      'target_name': 'tests',
      'cflags': [
        '-Wall', '-Wextra', '-Werror', '-O2',
        '-isystem', '<!(node -p "require(\'path\').dirname(require.resolve(\'nan\'))")',
      ],
      'cflags_cc': ['-std=gnu++20'],
      'cflags_cc!': ['-std=gnu++17', '-fno-rtti', '-fno-exceptions'],
      'include_dirs': ['../../../native'],
      'sources': [
        '../../../native/base/json_reader.cc',
        '../../../native/door/feed_grammar.cc',
        '../../../native/door/http_reader.cc',
        '../../../native/door/watch_reader.cc',
        '../../../native/pool/torus.cc',
        'addon.cc',
        'readers_wrap.cc',
        'torus_wrap.cc',
        'turns_wrap.cc',
      ],
    },
  ],
}
