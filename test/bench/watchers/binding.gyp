{
  'includes': ['../../../native/flags.gypi'],
  'targets': [
    {
      # The load generator of npm run bench:feeds and bench:transports: a plain program, built when it is first wanted.
      # protocol.h says how a protocol is added.
      'target_name': 'watchers',
      'type': 'executable',
      'sources': [
        '../../../native/swarm/histogram.cc',
        'crowd.cc',
        'http.cc',
        'main.cc',
        'measure.cc',
        'protocols.cc',
      ],
    },
  ],
}
