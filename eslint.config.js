import js from '@eslint/js';
import globals from 'globals';

/**
 * The programs on the server, and what each may import by `../`: the published client and what is no part of the server. A
 * page's path is that of its address.
 */
const PROGRAMS = {
  page: ['client/'],
  'arena/pages': ['client/', 'page/', 'swarm/', 'uplot.js'],
  'arena/games': ['client/', 'page/', 'arena-pages/', 'swarm/'],
  swarm: ['client/', 'report/', 'base/', 'arena/games/'],
  report: ['words.js'],
  examples: []
};

export default [
  { ignores: ['node_modules/', '**/build/', '.tap/', 'coverage/'] },
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.cjs', 'bin/sprites*', 'test/nodes'],
    languageOptions: { globals: globals.node },
    rules: {
      'no-restricted-properties': [
        'error',
        {
          property: 'resetAndDestroy',
          message:
            'While the socket ends it closes nothing, and the process hangs at its own end: test/support/http.js.'
        }
      ]
    }
  },
  {
    files: ['lib/**/*.js', 'server.js', 'bin/sprites*'],
    rules: {
      'max-params': ['error', 5],
      'max-lines-per-function': ['error', { max: 100, skipBlankLines: true, skipComments: true }]
    }
  },
  {
    files: [
      'lib/page/**/*.js',
      'lib/arena/pages/*.js',
      'lib/arena/games/*/{phone,field,panel}.js',
      'lib/client/**/*.js',
      'lib/operator/admin-page/*.js',
      'lib/report/{language,report-page/*}.js'
    ],
    languageOptions: { globals: { ...globals.browser } }
  },
  ...Object.entries(PROGRAMS).map(([folder, uses]) => ({
    files: [`lib/${folder}/**/*.js`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^(\\.\\./)+(?!${['\\.', ...uses].join('|')})`,
              message: `This is a program: of other folders it may import ${uses.join(', ') || 'nothing'} alone.`
            }
          ]
        }
      ]
    }
  }))
];
