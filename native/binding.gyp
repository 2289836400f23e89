{
  'target_defaults': {
    'cflags': ['-Wall', '-Wextra', '-Werror', '-O2'],
    'cflags_cc': ['-std=gnu++20'],
    'cflags_cc!': ['-std=gnu++17', '-fno-rtti', '-fno-exceptions'],
    'include_dirs': ['.'],
  },
  'targets': [
    {
      # The algorithms: no V8, no Node. The sanitizer builds, the fuzzers and the addon share them.
      'target_name': 'core',
      'type': 'static_library',
      'cflags': ['-fPIC'],
      'sources': [
        'door/door.cc',
        'door/http_reader.cc',
        'door/json_reader.cc',
        'door/listener.cc',
        'door/proxy_protocol.cc',
        'door/write_now.cc',
        'pool/pool.cc',
        'pool/snapshot.cc',
        'pool/torus.cc',
        'relay/relay.cc',
      ],
    },
    {
      'target_name': 'sprites',
      'dependencies': ['core'],
      'cflags': ['-isystem', '<!(node -p "require(\'path\').dirname(require.resolve(\'nan\'))")'],
      'sources': [
        'addon/addon.cc',
        'addon/address_limits_wrap.cc',
        'addon/door_wrap.cc',
        'addon/pool_wrap.cc',
        'addon/readers_wrap.cc',
        'addon/relay_wrap.cc',
        'addon/system_wrap.cc',
        'addon/torus_wrap.cc',
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
