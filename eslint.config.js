import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['node_modules/', '**/build/', '.tap/', 'coverage/'] },
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.cjs', 'bin/*', 'test/nodes'],
    languageOptions: { globals: globals.node },
    rules: {
      'no-restricted-properties': [
        'error',
        {
          property: 'resetAndDestroy',
          message:
            'While the socket ends it closes nothing, and the process hangs at its own end: test/support/reset-socket.js.'
        }
      ]
    }
  },
  {
    files: [
      'lib/page/**/*.js',
      'lib/arena/pages/*.js',
      'lib/arena/games/*/{phone,field,panel}.js',
      'lib/football/page/*.js',
      'lib/client/**/*.js',
      'lib/server/admin-page/*.js',
      'lib/swarm/report-page/*.js'
    ],
    languageOptions: { globals: { ...globals.browser } }
  }
];
