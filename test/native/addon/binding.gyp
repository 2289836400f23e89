{
  'includes': ['../../../native/flags.gypi'],
  'targets': [
    {
      'target_name': 'tests',
      'sources': [
        '../../../native/base/json_reader.cc',
        '../../../native/http/feed_grammar.cc',
        '../../../native/http/http_reader.cc',
        '../../../native/http/request_reader.cc',
        '../../../native/http/watch_reader.cc',
        '../../../native/torus/torus.cc',
        'addon.cc',
        'readers_wrap.cc',
        'torus_wrap.cc',
      ],
    },
  ],
}
