{
  'includes': ['../../../native/flags.gypi'],
  'targets': [
    {
      # The load of npm run bench:feeds, on the parts of the swarm's engine: a plain program, built
      # when it is first wanted. protocol.h says how a protocol is added.
      'target_name': 'watchers',
      'type': 'executable',
      'sources': [
        '../../../native/swarm/http.cc',
        '../../../native/swarm/process.cc',
        '../../../native/swarm/socket.cc',
        'crowd.cc',
        'main.cc',
        'protocols.cc',
      ],
    },
  ],
}
