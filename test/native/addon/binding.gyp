{
  'includes': ['../../../native/flags.gypi'],
  'targets': [
    {
      'target_name': 'tests',
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
