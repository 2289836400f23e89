import { problems } from './problems.js';
import { version } from '../base/version.js';

/**
 * The contract as an OpenAPI 3.1 document, for programs. It is made from the routes, the problems and the options. This
 * module adds what those tables do not have: the descriptions and shapes of operations. lib/http/README.md is the contract
 * for people.
 */

const text = (pattern, more) => ({ type: 'string', pattern, ...more });
const object = (properties, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required
});
const list = (items) => ({ type: 'array', items });
const schemaRef = (name) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema) => ({ 'application/json': schema });
const whole = (minimum, maximum) => ({ type: 'integer', minimum, maximum });
const COUNT = whole(0);
const TEXT = { type: 'string' };

/** Schemas of the operations, by name. */
const schemas = {
  Cursor: text('^[A-Za-z0-9-]{1,40}$', { description: 'Opaque. `none`: the client has no value.' }),
  Key: text('^[A-Za-z0-9._~/-]{1,200}$', {
    description: 'No segment is empty, `.` or `..`. In a path its slashes stay as they are.'
  }),
  Id: text('^[A-Za-z0-9_-]{1,64}$', { description: 'A capability: as secret as a password.' }),
  Sprite: { type: 'object', description: 'Any JSON object.' },
  Patch: list(object({ op: TEXT, path: TEXT, value: {} }, ['op', 'path'])),
  Item: {
    ...object({ feed: schemaRef('Key'), cursor: schemaRef('Cursor'), value: {} }, ['feed']),
    description:
      'Neither `value` nor `patch` nor `items`: nothing new. `from`: what the patch is to, and the items are behind.' +
      ' `gap`: older items are gone.',
    dependentRequired: { patch: ['from', 'cursor'], items: ['from', 'cursor'], value: ['cursor'] }
  },
  Items: object({ items: list(schemaRef('Item')) }, ['items']),
  Keys: object(
    {
      feeds: list(
        object({
          feed: schemaRef('Key'),
          kind: { enum: ['value', 'log'] },
          cursor: schemaRef('Cursor'),
          bytes: COUNT,
          watching: COUNT
        })
      ),
      next: schemaRef('Key')
    },
    ['feeds']
  ),
  Published: object({ cursor: schemaRef('Cursor'), watching: COUNT }),
  Names: object({ version: COUNT, names: list({ type: 'object' }) }, ['version']),
  Input: { type: 'object', additionalProperties: { type: 'number' } },
  Problem: object({
    type: text('^urn:sprites:[a-z-]+$'),
    title: TEXT,
    status: { type: 'integer' },
    detail: { type: 'string', description: 'What the caller can do.' }
  })
};
/** Members of an answer about the next request. */
const NEXT_REQUEST = {
  turn: text('^[A-Za-z0-9-]{1,40}$', { description: 'Of the next request, as it is.' }),
  retry: { ...COUNT, description: 'Milliseconds to wait before the next request.' }
};
Object.assign(schemas.Items.properties, NEXT_REQUEST);
Object.assign(schemas.Item.properties, {
  from: schemaRef('Cursor'),
  patch: schemaRef('Patch'),
  items: list({}),
  gap: { const: true },
  problem: TEXT,
  ...NEXT_REQUEST
});

/** Parameters of a path, by name. */
const PATH_PARAMETERS = {
  id: schemaRef('Id'),
  edge: { enum: ['left', 'right', 'up', 'down'] },
  key: schemaRef('Key'),
  name: text('^[a-z0-9-]{1,32}$'),
  player: schemaRef('Id'),
  number: whole(1),
  game: TEXT
};

const AFTER = { anyOf: [schemaRef('Cursor'), { const: '' }] };

/** The hold of a poll of feeds. */
const feedHold = (hold) => ({
  anyOf: [{ const: 0 }, whole(5, hold)],
  description: 'Seconds; 0: the answer comes at once.'
});

/** Parameters of a query and of the header, by name. */
const queryParameters = (hold) => ({
  ack: { ...COUNT, description: 'The `seq` of the last answer that was handled.' },
  hold: { ...whole(5, hold), description: 'Seconds.' },
  feedHold: feedHold(hold),
  n: { ...COUNT, description: "The client's counter: a repeated one is answered as before." },
  after: AFTER,
  delta: { enum: ['0', '1'], description: '1: patches are welcome.' },
  last: { ...whole(1, 1000000), description: 'So many items back in a log.' },
  turn: text('^[A-Za-z0-9-]{1,40}$', { description: 'The `turn` of the last answer.' }),
  prefix: { ...TEXT, description: 'What keys begin with.' },
  from: {
    ...schemaRef('Key'),
    description: 'Of a log: `start`. Of keys: the `next` of the page before.'
  },
  watch: text('^[A-Za-z0-9._~/-]{1,200}:[A-Za-z0-9-]{0,40}(,|$)', {
    description: 'Up to 32 keys, each with a colon and what `after` has: `scores:e7-41,table:`.'
  }),
  grant: { ...TEXT, description: 'A grant, where headers can not be set.' },
  version: COUNT
});

/**
 * @param {...(string | string[])} parts names with spaces between, or lists of names
 * @returns {string[]} all these names
 */
const named = (...parts) => parts.flatMap((part) => (Array.isArray(part) ? part : part.split(' ')));

/** Problems of every operation. */
const COMMON_PROBLEMS = named('bad-request misdirected too-many-connections too-much-held');
/** Problems of an operation on a client whose id is another server's. */
const OTHER_SERVER_PROBLEMS = named('misdirected restarting');
const CLIENT_PROBLEMS = named('unknown-client', OTHER_SERVER_PROBLEMS);
const GRANT_PROBLEMS = named('grant-required bad-grant grant-expired not-granted');
const TOKEN_PROBLEMS = named('bad-token publishing-closed');
const PUBLISH_PROBLEMS = named(
  TOKEN_PROBLEMS,
  GRANT_PROBLEMS,
  'bad-key reserved-feed feed-memory-full too-many-feeds other-kind',
  'publishing-busy publishing-slow state-unwritable draining'
);
const VALUE_PROBLEMS = named(PUBLISH_PROBLEMS, 'feed-too-large bad-control unknown-game');
const WATCH_PROBLEMS = named(
  GRANT_PROBLEMS,
  'bad-key bad-cursor bad-hold bad-delta bad-turn unknown-feed draining',
  'upstream-failed too-many-fetches too-many-feeds feed-memory-full too-many-watchers'
);

/*
 * The operations. Each has its purpose, the parameters of its query (with the name of the schema where it differs), the
 * body, the answer (status and schema), and its own problems. `token`: a publisher's token or a grant; `maybe`: optional.
 */

const GRANT_OPTIONAL = { token: 'maybe', query: ['grant'] };
const PUBLISHING = { token: true, query: ['grant'], answer: [200, schemaRef('Published')] };
const valueBody = (bytes) => json({ description: `At most ${bytes} bytes.` });

const torusOperations = ({ maxSprite }) => ({
  'POST /join': {
    about: 'Takes a place in the torus.',
    ...GRANT_OPTIONAL,
    answer: [201, object({ id: schemaRef('Id'), hold: COUNT, lease: COUNT, maxSprite: COUNT })],
    problems: [
      GRANT_PROBLEMS,
      'too-many-joins too-many-clients torus-full draining state-unwritable'
    ]
  },
  'GET /poll/{id}': {
    about: 'Waits for sprites.',
    query: ['ack', 'hold'],
    answer: [200, object({ seq: COUNT, sprites: list({ type: 'object' }) })],
    problems: [CLIENT_PROBLEMS, 'bad-ack ack-ahead bad-hold too-many-polls state-unwritable']
  },
  'POST /throw/{id}/{edge}': {
    about: `Throws a sprite, of at most ${maxSprite} bytes, to a neighbor.`,
    query: ['n'],
    body: json(schemaRef('Sprite')),
    answer: [202, object({ state: { enum: ['delivered', 'queued', 'duplicate'] } })],
    problems: [
      CLIENT_PROBLEMS,
      'bad-edge bad-number stale-number bad-sprite sprite-too-large too-many-throws',
      'too-many-sprites neighbor-busy mailboxes-full state-unwritable'
    ]
  },
  'POST /leave/{id}': {
    about: 'Gives the place back.',
    answer: [204],
    problems: [OTHER_SERVER_PROBLEMS, 'state-unwritable']
  },
  'GET /place/{id}': {
    about: 'Where the place is.',
    answer: [200, object({ row: COUNT, column: COUNT, rows: COUNT, columns: COUNT })],
    problems: [CLIENT_PROBLEMS]
  },
  'GET /status': { about: 'The live counts.', answer: [200, { type: 'object' }] },
  'HEAD /status': { about: 'The same, without them.', answer: [200] },
  'GET /status/{id}': {
    about: "The live counts of the client's server.",
    answer: [200, { type: 'object' }],
    problems: [CLIENT_PROBLEMS]
  },
  'GET /addresses': {
    about: 'URLs for other machines.',
    answer: [200, object({ addresses: list({ type: 'string', format: 'uri' }) })]
  },
  'GET /openapi.json': { about: 'This document.', answer: [200, { type: 'object' }] }
});

const watchOperations = ({ hold }) => ({
  'GET /feed/{key}': {
    about:
      'A feed, or what is newer than `after`. As text/event-stream: an event for each version.',
    token: 'maybe',
    query: ['after', ['hold', 'feedHold'], 'delta', 'turn', 'from', 'last', 'grant'],
    answer: [200, schemaRef('Item'), 'text/event-stream'],
    cached: true,
    problems: [WATCH_PROBLEMS, 'bad-from not-a-log']
  },
  'HEAD /feed/{key}': {
    about: 'Whether there is a value, and how long where it is not compressed. Nothing is fetched.',
    ...GRANT_OPTIONAL,
    answer: [200],
    cached: true,
    problems: [GRANT_PROBLEMS, 'bad-key unknown-feed']
  },
  'GET /feeds': {
    about:
      'With `watch`: waits for news of up to 32 feeds, as POST does. Else, with a token, the keys there are, in' +
      ' order, a page at a time.',
    token: 'maybe',
    query: ['watch', ['hold', 'feedHold'], 'delta', 'turn', 'grant', 'prefix', 'from'],
    answer: [200, { oneOf: [schemaRef('Items'), schemaRef('Keys')] }],
    cached: true,
    problems: [TOKEN_PROBLEMS, WATCH_PROBLEMS, 'bad-watch']
  },
  'POST /feeds': {
    about: 'Waits for news of up to 32 feeds.',
    ...GRANT_OPTIONAL,
    body: json({
      ...object({
        hold: feedHold(hold),
        delta: { type: 'boolean' },
        feeds: { type: 'object', maxProperties: 32, additionalProperties: AFTER }
      }),
      required: ['feeds']
    }),
    answer: [200, schemaRef('Items')],
    problems: [WATCH_PROBLEMS, 'bad-watch watch-too-large']
  }
});

const publishOperations = ({ feedBytes }) => ({
  'POST /feed/{key}': {
    about: 'Appends an item to a log.',
    body: valueBody(feedBytes),
    ...PUBLISHING,
    created: true,
    problems: [PUBLISH_PROBLEMS, 'bad-value item-too-large']
  },
  'PUT /feed/{key}': {
    about: 'Publishes a value.',
    body: valueBody(feedBytes),
    ...PUBLISHING,
    created: true,
    problems: [VALUE_PROBLEMS, 'bad-value']
  },
  'PATCH /feed/{key}': {
    about: 'Publishes a change of the value.',
    body: { 'application/json-patch+json': schemaRef('Patch'), 'application/merge-patch+json': {} },
    ...PUBLISHING,
    problems: [VALUE_PROBLEMS, 'unknown-feed bad-patch patch-conflict']
  },
  'DELETE /feed/{key}': {
    about: 'Ends a feed.',
    ...PUBLISHING,
    answer: [204],
    problems: [
      TOKEN_PROBLEMS,
      GRANT_PROBLEMS,
      'bad-key unknown-feed reserved-feed publishing-busy state-unwritable draining'
    ]
  }
});

const ARENA_OPERATIONS = {
  'GET /games': { about: 'The games.', answer: [200, object({ games: list({ type: 'object' }) })] },
  'GET /arena': {
    about: 'The arenas.',
    answer: [
      200,
      object({
        arenas: list(object({ name: TEXT, game: { type: ['string', 'null'] }, players: COUNT }))
      })
    ]
  },
  'POST /arena/{name}': {
    about: 'Joins as a player.',
    ...GRANT_OPTIONAL,
    answer: [201, object({ player: schemaRef('Id'), number: COUNT, feed: schemaRef('Key') })],
    problems: [
      GRANT_PROBLEMS,
      'unknown-arena arena-full too-many-joins too-many-clients draining state-unwritable'
    ]
  },
  'POST /arena/{name}/{player}': {
    about: "The player's input.",
    query: ['n'],
    body: json(schemaRef('Input')),
    answer: [204],
    problems: [
      OTHER_SERVER_PROBLEMS,
      'unknown-arena unknown-player bad-input bad-number input-too-large too-many-inputs'
    ]
  },
  'GET /arena/{name}/status': {
    about: 'All live counts.',
    token: true,
    answer: [200, { type: 'object' }],
    problems: [TOKEN_PROBLEMS, 'unknown-arena']
  },
  'GET /arena/{name}/names': {
    about: "The players' names, if they are newer.",
    token: true,
    query: [['after', 'version']],
    answer: [200, schemaRef('Names')],
    problems: [TOKEN_PROBLEMS, 'unknown-arena bad-number']
  },
  'POST /arena/{name}/{player}/leave': {
    about: 'Leaves.',
    answer: [204],
    problems: [OTHER_SERVER_PROBLEMS, 'unknown-arena']
  },
  'POST /arena/{name}/{player}/name': {
    about: 'Gives the player a name.',
    body: json(object({ name: { type: 'string', maxLength: 24 } })),
    answer: [204],
    problems: [
      OTHER_SERVER_PROBLEMS,
      'unknown-arena unknown-player bad-name input-too-large too-many-inputs',
      'state-unwritable'
    ]
  },
  'PUT /arena/{name}/names/{number}': {
    about: 'Hides a name, or shows it.',
    token: true,
    body: json(object({ away: { type: 'boolean' } })),
    answer: [204],
    problems: [
      TOKEN_PROBLEMS,
      'unknown-arena unknown-player bad-name input-too-large state-unwritable'
    ]
  },
  'GET /arena/{name}/content/{game}': {
    about: 'What a game is about.',
    token: true,
    answer: [200, object({ content: {} })],
    problems: [TOKEN_PROBLEMS, 'unknown-arena unknown-game']
  },
  'PUT /arena/{name}/content/{game}': {
    about: 'Gives a game something to be about.',
    token: true,
    body: json({}),
    answer: [204],
    problems: [
      TOKEN_PROBLEMS,
      'unknown-arena unknown-game bad-content content-too-large state-unwritable'
    ]
  }
};

/** @returns {string} the key of a path in the routes */
function routeOf(path, routes) {
  const segments = path.slice(1).split('/');
  return routes.has(segments[0]) ? segments[0] : `${segments[0]}/${segments.length}`;
}

/** Returns the response with some of the problems. */
const refusalResponse = (names) => ({
  description: names.map((name) => `\`${name}\`: ${problems[name].detail}`).join('\n\n'),
  content: {
    'application/problem+json': {
      schema: {
        allOf: [schemaRef('Problem')],
        properties: { type: { enum: names.map((name) => `urn:sprites:${name}`) } }
      }
    }
  },
  ...(names.some((name) => problems[name].retryAfter) && {
    headers: { 'Retry-After': { description: 'Seconds.', schema: COUNT } }
  })
});

const contentOf = (bodies) =>
  Object.fromEntries(Object.entries(bodies).map(([type, schema]) => [type, { schema }]));

function responsesOf({ answer: [status, schema, other], created, cached, problems: names = [] }) {
  const content = schema && {
    ...contentOf(json(schema)),
    ...(other && contentOf({ [other]: TEXT }))
  };
  const success = { description: 'Done.', ...(content && { content }) };
  const statuses = new Set(names.map((name) => problems[name].status));
  return {
    [status]: success,
    ...(cached && { 304: { description: 'With `--feed-cache`: If-None-Match has the ETag.' } }),
    ...(created && { 201: { ...success, description: 'Done; the feed is new.' } }),
    ...Object.fromEntries(
      [...statuses].map((one) => [
        one,
        refusalResponse(
          [...new Set([...names, ...COMMON_PROBLEMS])].filter(
            (name) => problems[name].status === one
          )
        )
      ])
    ),
    default: { $ref: '#/components/responses/Refused' }
  };
}

function parametersOf(path, query = [], hold) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return [
    ...names.map((name) => ({ name, in: 'path', required: true, schema: PATH_PARAMETERS[name] })),
    ...query
      .map((one) => [one].flat())
      .map(([name, of = name]) => ({ name, in: 'query', schema: queryParameters(hold)[of] }))
  ];
}

/**
 * @param {object} options see lib/operator/options.js
 * @param {Map<string, Record<string, Function>>} routes those of routes.js
 * @returns {object} the document
 */
export function openApi(options, routes) {
  const operations = {
    ...{ ...torusOperations(options), ...watchOperations(options) },
    ...{ ...publishOperations(options), ...ARENA_OPERATIONS }
  };
  const paths = {};
  const namedProblems = new Set();
  for (const [route, operation] of Object.entries(operations)) {
    const [method, path] = route.split(' ');
    if (routes.get(routeOf(path, routes))?.[method] === undefined) continue;
    const { about, query, body, token, problems: own = [] } = operation;
    // Every body may be compressed, or of another type.
    const allProblems = named(...own, ...(body ? ['bad-media-type'] : []));
    for (const name of allProblems) namedProblems.add(name);
    const words = path.match(/\w+/g).map((word) => word[0].toUpperCase() + word.slice(1));
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        operationId: method.toLowerCase() + words.join(''),
        summary: about,
        security: token ? [{ publisher: [] }, ...(token === 'maybe' ? [{}] : [])] : [],
        parameters: parametersOf(path, query, options.hold),
        ...(body && { requestBody: { required: true, content: contentOf(body) } }),
        responses: responsesOf({ ...operation, problems: allProblems })
      }
    };
  }
  const others = Object.keys(problems).filter(
    (name) =>
      COMMON_PROBLEMS.includes(name) || (!problems[name].onlyPort && !namedProblems.has(name))
  );
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sprites',
      version: version(),
      summary: 'A torus of desktops that throw sprites at each other, and feeds that many watch',
      license: { name: 'MIT', identifier: 'MIT' }
    },
    servers: [{ url: '.' }],
    paths,
    components: {
      schemas,
      responses: { Refused: refusalResponse(others) },
      securitySchemes: {
        publisher: {
          ...{ type: 'http', scheme: 'bearer' },
          description: "A publisher's token, or a grant."
        }
      }
    }
  };
}
