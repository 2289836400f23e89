{
  'includes': ['../../../native/flags.gypi'],
  'targets': [
    {
      # The load generator of npm run bench:feeds and bench:transports: a plain program, built when it is first wanted.
      # A protocol is a file of its own, which protocol.h names.
      'target_name': 'watchers',
      'type': 'executable',
      'sources': [
        '../../../native/swarm/histogram.cc',
        'crowd.cc',
        'framed.cc',
        'http.cc',
        'main.cc',
        'measure.cc',
        'nchan.cc',
        'recording.cc',
        'sprites.cc',
        'sse.cc',
        'ws.cc',
      ],
    },
  ],
}
