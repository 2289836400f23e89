{
  'includes': ['../flags.gypi'],
  'targets': [
    {
      # The load generator behind bin/sprites-swarm, which has it built when it is first wanted: all but how it is
      # started.
      'target_name': 'core',
      'type': 'static_library',
      'cflags': ['-fPIC'],
      'sources': ['../client/src/json.cc', '<!@(node ../units.js swarm swarm)'],
    },
    {
      # A plain program, for http.
      'target_name': 'swarm',
      'type': 'executable',
      'dependencies': ['core'],
      'sources': ['program/main.cc'],
    },
    {
      # The same inside Node, for https by Node's own OpenSSL.
      'target_name': 'swarm_tls',
      'dependencies': ['core'],
      'sources': ['tls/swarm_tls.cc'],
    },
  ],
}
