{
  'target_defaults': {
    'cflags': ['-Wall', '-Wextra', '-Werror', '-O2'],
    'cflags_cc': ['-std=gnu++20'],
    'cflags_cc!': ['-std=gnu++17', '-fno-rtti', '-fno-exceptions'],
  },
  'targets': [
    {
      # The algorithms: no V8, no Node. The sanitizer builds, the fuzzers and the addon share them.
      'target_name': 'core',
      'type': 'static_library',
      'cflags': ['-fPIC'],
      'sources': [
        'clients.cc',
        'front.cc',
        'http.cc',
        'json.cc',
        'listener.cc',
        'proxy_protocol.cc',
        'relay.cc',
        'snapshot.cc',
        'torus.cc',
      ],
    },
    {
      'target_name': 'sprites',
      'dependencies': ['core'],
      'cflags': ['-isystem', '<!(node -p "require(\'path\').dirname(require.resolve(\'nan\'))")'],
      'sources': [
        'addon.cc',
        'clients_wrap.cc',
        'front_wrap.cc',
        'readers_wrap.cc',
        'relay_wrap.cc',
        'sources_wrap.cc',
        'torus_wrap.cc',
      ],
    },
    {
      # The load generator behind bin/sprites-swarm: a plain program.
      'target_name': 'swarm',
      'type': 'executable',
      'sources': [
        'swarm/account.cc',
        'swarm/answers.cc',
        'swarm/clients.cc',
        'swarm/core.cc',
        'swarm/engine.cc',
        'swarm/histogram.cc',
        'swarm/lanes.cc',
        'swarm/main.cc',
        'swarm/options.cc',
        'swarm/parent.cc',
        'swarm/response.cc',
        'swarm/socket.cc',
        'swarm/sprite.cc',
        'swarm/wheel.cc',
      ],
    },
  ],
}
