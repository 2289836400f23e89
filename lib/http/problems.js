/**
 * All problems that the server answers with: RFC 9457 documents of type `urn:sprites:NAME`.
 *
 * A problem's `detail` tells the caller what to do. A problem has `retryAfter`, in seconds, where the same request
 * can succeed later (429, 502 and 503). `problemAnswer` writes the documents.
 */

/**
 * @typedef {object} Problem
 * @property {number} status the HTTP status
 * @property {string} title names the problem, the same for every occurrence
 * @property {string} detail what the caller can do about it
 * @property {string} [onlyPort] the only port that answers with it
 * @property {number} [retryAfter] seconds after which a retry makes sense
 */

/** The problems by their statuses. @type {Record<number, Record<string, Omit<Problem, 'status'>>>} */
const BY_STATUS = {
  400: {
    'bad-request': {
      title: 'Not a readable HTTP request',
      detail: 'Send a well-formed HTTP/1.1 request with one Host header.'
    },
    'bad-edge': {
      title: 'No such edge',
      detail: 'Throw over one of the edges left, right, up and down: POST /throw/{id}/left.'
    },
    'bad-ack': {
      title: 'Not a sequence number',
      detail: 'Give ack once, as the plain decimal "seq" of the last answer that you have handled.'
    },
    'ack-ahead': {
      title: 'Acknowledges what was never sent',
      detail: 'Give as ack the "seq" of an answer you have received, or 0.'
    },
    'bad-hold': {
      title: 'Not a hold of this server',
      detail:
        'Give hold once, in whole seconds from 5 up to the "hold" that join answered; of feeds also 0.'
    },
    'bad-number': {
      title: 'Not a plain number',
      detail: 'Give it once, as a plain decimal number; n grows by one with each throw or input.'
    },
    'stale-number': {
      title: 'Stale throw number',
      detail: 'Only the last 64 numbers are remembered: give a number above your newest throw.'
    },
    'bad-input': {
      title: 'Not an input of the game',
      detail:
        'Send one flat JSON object of numbers. GET /games has the names and ranges, for the game in the' +
        ' control feed.'
    },
    'bad-name': {
      title: 'Not a name',
      detail: 'Send one JSON object in UTF-8, {"name":"Ada"}, with a name of 1 to 24 characters.'
    },
    'bad-content': {
      title: 'Not the content of a game',
      detail: 'Send one JSON value in UTF-8, nested at most 64 deep, or null for the game’s own.'
    },
    'bad-control': {
      title: 'Not a command to the arena',
      detail: 'Send one JSON object of game, page, rate, pace, running and settings.'
    },
    'bad-key': {
      title: 'Not the key of a feed',
      detail:
        'Give 1 to 200 of A-Z a-z 0-9 . _ ~ - and /, with no segment that is empty, "." or "..".'
    },
    'bad-cursor': {
      title: 'Not a cursor',
      detail: 'Give after once, as the "cursor" of the last answer, or leave it out.'
    },
    'bad-delta': {
      title: 'Not a choice of patches',
      detail: 'Give delta once: delta=1 in a query, "delta":true in a body, or leave it out.'
    },
    'bad-from': {
      title: 'Not a place in a log',
      detail:
        'Give from=start, or last=N with N from 1 to 1000000, once and without after; without any' +
        ' of them the answer is what the log keeps.'
    },
    'not-a-log': {
      title: 'A value, not a log',
      detail: 'Leave out from and last: this feed has a value, not items.'
    },
    'bad-turn': {
      title: 'Not a turn',
      detail: 'Give turn once, as the "turn" of the last answer, or leave it out.'
    },
    'bad-watch': {
      title: 'Not a list of feeds',
      detail: 'Send {"feeds":{"KEY":"CURSOR"}} with 1 to 32 keys, no name twice; "" is no cursor.'
    },
    'bad-value': {
      title: 'Not a value',
      detail: 'Publish one JSON text in UTF-8, nested at most 64 deep, and nothing else.'
    },
    'bad-patch': {
      title: 'Not a patch',
      detail: 'Send a JSON Patch (RFC 6902) or a JSON Merge Patch (RFC 7396), as Content-Type says.'
    },
    'bad-sprite': {
      title: 'Not a sprite',
      detail: 'Send one JSON object in UTF-8, nested at most 32 deep, and nothing else.'
    },
    'bad-revocation': {
      title: 'Not a revocation',
      onlyPort: 'admin port',
      detail: 'Give a jti or a sub of 1 to 200 bytes; there may be 10000 revocations.'
    },
    'bad-ban': {
      title: 'Not a ban',
      onlyPort: 'admin port',
      detail: 'Give an IP address and ?seconds= from 1 to 31536000; there may be 1000 bans.'
    }
  },
  401: {
    'bad-token': {
      title: 'Not a token that may publish',
      detail: 'Send Authorization: Bearer with a token of the file in --publish-token-file.'
    },
    'grant-required': {
      title: 'Only with a grant',
      detail: 'Send Authorization: Bearer with a grant, or ?grant= where you can set no headers.'
    },
    'bad-grant': {
      title: 'Not a grant of this server',
      detail:
        'Ask your application for a new grant: this one is not signed by a key of the server, is malformed,' +
        ' is not valid yet or for too long, or was revoked.'
    },
    'grant-expired': {
      title: 'The grant has expired',
      detail: 'Ask your application for a new grant, and send the request again with it.'
    }
  },
  403: {
    'not-granted': {
      title: 'Not among the rights of the grant',
      detail: 'Ask your application for a grant with this right.'
    },
    'reserved-feed': {
      title: "A feed of the server's own",
      detail:
        'Only the server publishes and deletes this feed. Send commands of an arena to' +
        ' arena/{name}/control, by PUT or as a merge patch.'
    },
    'publishing-closed': {
      title: 'Publishing is closed',
      detail: 'The operator can open it: --publish-token-file FILE, with one token a line.'
    },
    'not-from-here': {
      title: 'Only from this host',
      onlyPort: 'admin port',
      detail:
        'Send requests to the admin port from its own host, by address, and not from a page of another site.'
    }
  },
  404: {
    'unknown-feed': {
      title: 'No such feed',
      detail: 'The feed was never published, or it was deleted: publish it, or ask later.'
    },
    'unknown-arena': { title: 'No such arena', detail: 'GET /arena lists the arenas.' },
    'unknown-game': { title: 'No such game', detail: 'GET /games lists the games.' },
    'unknown-player': {
      title: 'No such player',
      detail: 'The id is not known, or its lease has ended: POST /arena/{name} to play again.'
    },
    'unknown-client': {
      title: 'No such client',
      detail: 'The id is not known, or its lease has ended: POST /join for a new place.'
    },
    'not-found': {
      title: 'No such resource',
      detail:
        'There are /join, /poll/{id}, /throw/{id}/{edge}, /leave/{id}, /place/{id}, /feed/{key}, ' +
        '/feeds and /status; and with an arena /games, /arena and /arena/{name}. GET /openapi.json has all.'
    }
  },
  405: {
    'method-not-allowed': {
      title: 'Not by this method',
      detail: 'Use a method that the Allow header names.'
    }
  },
  408: {
    'request-timeout': {
      title: 'The request took too long to arrive',
      detail: 'Send the whole request without pausing.'
    }
  },
  409: {
    'patch-conflict': {
      title: 'The patch does not fit the value',
      detail: "Get the feed's value and make the patch anew."
    },
    'other-kind': {
      title: 'A feed of the other kind',
      detail:
        'POST items to a log, PUT or PATCH a value: a feed is what its first publication has made' +
        ' it. Use another key, or delete it first.'
    }
  },
  413: {
    'item-too-large': {
      title: 'Item too large',
      detail:
        'Append fewer bytes, or ask the operator for a larger --feed-bytes, or --log-bytes, which' +
        ' bounds an item as well.'
    },
    'feed-too-large': {
      title: 'Value too large',
      detail: 'Publish fewer bytes, or ask the operator for a larger --feed-bytes.'
    },
    'watch-too-large': { title: 'List of feeds too large', detail: 'Send at most 16384 bytes.' },
    'input-too-large': { title: 'Input too large', detail: 'Send at most 512 bytes.' },
    'content-too-large': { title: 'Content too large', detail: 'Send at most 32768 bytes.' },
    'sprite-too-large': {
      title: 'Sprite too large',
      detail: 'Throw a sprite of at most "maxSprite" bytes; join answers that number.'
    }
  },
  415: {
    'bad-media-type': {
      title: 'Not a Content-Type or Content-Encoding that is taken here',
      detail:
        "Send application/merge-patch+json or, except to an arena's control, application/json-patch+json."
    }
  },
  417: {
    'expectation-failed': {
      title: 'Expectation not met',
      detail: 'The only expectation this server meets is 100-continue.'
    }
  },
  421: {
    misdirected: {
      title: 'Wrong port or server',
      detail: 'This port takes only joins, throws and leaves: send other requests to the main port.'
    },
    'bad-host': {
      title: 'Not a name of this host',
      onlyPort: 'admin port',
      detail:
        'Use an address such as 127.0.0.1, or localhost, as Host; a proxy must send one of these. Another' +
        ' name is accepted if it is the one in --admin-host.'
    }
  },
  429: {
    'too-many-throws': {
      title: 'Too many throws',
      detail: 'Wait as long as Retry-After says, then throw the same sprite again.',
      retryAfter: 1
    },
    'too-many-inputs': {
      title: 'Too many inputs of one player',
      detail: 'Send as many a second as the control feed\'s "rate" says: only the latest counts.',
      retryAfter: 1
    },
    'too-many-joins': {
      // A banned address gets the same answer: it is not told of the ban.
      title: 'No join from this address now',
      detail:
        'Wait at least as long as Retry-After says, then join again, and less often; keep the id you have.',
      retryAfter: 1
    },
    'too-many-clients': {
      title: 'Too many clients from one address',
      detail:
        'Wait until a client of your address leaves, or its lease ends, then join; keep the id you have.',
      retryAfter: 30
    },
    'too-many-sprites': {
      title: 'Too many sprites from one address wait',
      detail: 'The sprite is still yours: throw it again when earlier sprites have arrived.',
      retryAfter: 5
    },
    'too-many-polls': {
      title: 'Too many polls',
      detail:
        'Ack what you have received, and wait as long as Retry-After says before you ask again.',
      retryAfter: 1
    },
    'too-many-fetches': {
      title: 'Too many feeds are fetched or awaited for one address',
      detail:
        'Watch fewer feeds, or ask again when they are published, or unwatched and forgotten.',
      retryAfter: 30
    }
  },
  431: {
    'head-too-large': {
      title: 'Request head too large',
      detail: 'Send fewer or shorter header fields.'
    }
  },
  500: {
    'internal-error': {
      title: 'Internal error',
      detail: 'Nothing was changed. Please report it to the operator.'
    }
  },
  502: {
    'upstream-failed': {
      title: 'The source of the feed has failed',
      detail:
        'The source sent no JSON value in time: it is unreachable, refuses, or redirects, which is' +
        " not followed. The server's log says which. Ask again when Retry-After is over.",
      retryAfter: 5
    }
  },
  503: {
    'state-unwritable': {
      title: 'The state cannot be written',
      detail:
        'The server cannot promise anything now: the sprite is still yours. Wait as long as' +
        ' Retry-After says, then send the same request again; polls continue.',
      retryAfter: 2
    },
    'too-many-feeds': {
      title: 'Too many feeds',
      detail: 'Delete a feed, or ask the operator for more --feeds.',
      retryAfter: 30
    },
    'feed-memory-full': {
      title: 'No memory left for feeds',
      detail: 'Delete a feed, or ask the operator for more --feed-memory.',
      retryAfter: 30
    },
    'too-many-watchers': {
      title: 'Too many watchers',
      detail: 'Watch again later, or fewer feeds.',
      retryAfter: 5
    },
    'publishing-busy': {
      title: 'Too many publications at once',
      detail: 'Wait for the answers to your publications, then publish again.',
      retryAfter: 1
    },
    'publishing-slow': {
      title: 'The publication took too long',
      detail:
        'Publish a smaller value, or a patch of fewer operations; or later, if the server is busy.',
      retryAfter: 30
    },
    'neighbor-busy': {
      title: "The neighbor's mailbox is full",
      detail: 'The sprite is still yours: keep it, and throw it again later.',
      retryAfter: 1
    },
    'mailboxes-full': {
      title: 'All mailboxes together are full',
      detail: 'The sprite is still yours: keep it, and throw it again later.',
      retryAfter: 5
    },
    'too-many-connections': {
      // The same answer for a full server, an address at its limit and a banned address: a stranger is not told which.
      title: 'No further connection now',
      detail: 'The server takes no further connection from this address now: connect again later.',
      retryAfter: 5
    },
    'too-much-held': {
      title: 'Too much memory buffered for one address',
      detail: 'Read your answers, and send the next request when the one before is answered.',
      retryAfter: 5
    },
    'arena-full': {
      title: 'No place left in the arena',
      detail: 'Every place is taken: join again when a player has left.',
      retryAfter: 10
    },
    'torus-full': {
      title: 'No place left in the torus',
      detail: 'Every place is taken: join again later.',
      retryAfter: 30
    },
    joining: {
      title: 'The server is starting, or joining its world',
      onlyPort: '`/readyz`',
      detail: 'Send clients to this server when it is ready, usually within seconds.',
      retryAfter: 1
    },
    restarting: {
      title: 'The server of this client restarts',
      detail: 'Its place is kept: ask again with the same id when Retry-After is over.',
      retryAfter: 5
    },
    draining: {
      title: 'The server is about to restart',
      detail: 'Join again when Retry-After is over.',
      retryAfter: 5
    }
  }
};

/** @type {Record<string, Problem>} */
export const problems = Object.fromEntries(
  Object.entries(BY_STATUS).flatMap(([status, group]) =>
    Object.entries(group).map(([name, problem]) => [name, { status: Number(status), ...problem }])
  )
);

/**
 * Returns a problem's answer, in its parts.
 *
 * @param {string} name one of `problems`
 * @param {{detail?: string, headers?: object}} [how] `detail` replaces that of the table; `headers` are further
 *     fields of the answer
 * @returns {{status: number, headers: Record<string, string | number>, body: string}}
 */
export function problemAnswer(name, { detail, headers } = {}) {
  const { status, title, detail: defaultDetail, retryAfter } = problems[name];
  const body = JSON.stringify({
    type: `urn:sprites:${name}`,
    title,
    status,
    detail: detail ?? defaultDetail
  });
  return {
    status,
    headers: {
      ...headers,
      'Content-Type': 'application/problem+json',
      'Content-Length': Buffer.byteLength(body),
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
      ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter })
    },
    body
  };
}
