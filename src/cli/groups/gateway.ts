import type { CommandRow } from '../terminal/table.js'

const CLIENT: CommandRow = {
  name: 'client',
  about: 'programs of others that get tokens by OAuth 2.0 (docs/OAUTH.md)',
  sub: [
    {
      name: 'create',
      about: 'register a client; its secret is shown this once',
      options: [
        { flags: '--name <name>', about: 'its name for people' },
        { flags: '--public', about: 'it can keep no secret: a program on a device or in a browser' },
        { flags: '--tier <tier>', about: 'its tokens have at most this tier, L0..L3 (default: L3)' },
        {
          flags: '--scope <list>',
          about: 'scopes that it may request (default: a2a:read,a2a:send and that of its tier)',
          repeat: true
        },
        { flags: '--redirect-uri <uri>', about: 'where a browser may be sent with the answer, exactly', repeat: true }
      ],
      more: [
        'Without a redirect URI it has client credentials (unless --public) and the device flow.',
        '',
        'Example: a2a-node a2a client create --name ci --tier L2 --scope a2a:send --scope a2a:tier:L2 --scope skill:test.run'
      ],
      load: async () => (await import('../commands/a2a/oauth.js')).createOAuthClient
    },
    {
      name: 'ls',
      about: 'the clients of this node',
      load: async () => (await import('../commands/a2a/oauth.js')).listOAuthClients
    },
    {
      name: 'revoke',
      args: '<id>',
      about: 'end a client at once, with its tokens and open connections',
      load: async () => (await import('../commands/a2a/oauth.js')).revokeOAuthClient
    }
  ]
}

const OAUTH: CommandRow = {
  name: 'oauth',
  about: 'requests for access, from browsers and devices',
  sub: [
    {
      name: 'ls',
      about: 'requests that wait for your decision',
      load: async () => (await import('../commands/a2a/oauth.js')).listOAuthRequests
    },
    {
      name: 'show',
      args: '<code>',
      about: 'the client and scopes of a code',
      load: async () => (await import('../commands/a2a/oauth.js')).showOAuth
    },
    {
      name: 'approve',
      args: '<code>',
      about: 'allow it; a terminal asks once more',
      options: [{ flags: '--yes', about: 'do not ask' }],
      load: async () => (await import('../commands/a2a/oauth.js')).approveOAuth
    },
    {
      name: 'deny',
      args: '<code>',
      about: 'refuse it',
      load: async () => (await import('../commands/a2a/oauth.js')).denyOAuth
    },
    {
      name: 'rotate-key',
      about: 'sign with a new key from now on',
      load: async () => (await import('../commands/a2a/oauth.js')).rotateOAuthKey
    }
  ]
}

/** Commands about what the node offers to programs that are no nodes. */
export const GATEWAY_COMMANDS: readonly CommandRow[] = [
  {
    name: 'a2a',
    about: 'access of programs to this node over HTTP',
    group: 'Gateways',
    sub: [
      {
        name: 'token',
        about: 'tokens for callers',
        sub: [
          {
            name: 'create',
            about: 'make a token; it is shown this once',
            options: [
              { flags: '--name <name>', about: 'its purpose' },
              {
                flags: '--tier <tier>',
                about: 'tier of its callers at most, L0..L3 (default: L1, or the weaker tier of this node)'
              },
              { flags: '--sandbox <id>', about: 'confine it to a sandbox' },
              { flags: '--scope <list>', about: 'its rights: read,send,admin (default: read,send)' },
              { flags: '--ttl <duration>', about: 'how long it works, at most 366d, or never (default: 90d)' }
            ],
            more: [
              'Clients send it as "Authorization: Bearer <token>".',
              '',
              'Example: a2a-node a2a token create --name editor --tier L2 --ttl 12h'
            ],
            load: async () => (await import('../commands/a2a/a2a.js')).createToken
          },
          {
            name: 'ls',
            about: 'the tokens of this node',
            load: async () => (await import('../commands/a2a/a2a.js')).listTokens
          },
          {
            name: 'revoke',
            args: '<id>',
            about: 'end a token at once, with its open connections',
            load: async () => (await import('../commands/a2a/a2a.js')).revokeToken
          }
        ]
      },
      {
        name: 'push',
        about: 'push notifications to webhooks of A2A clients',
        sub: [
          {
            name: 'ls',
            about: 'webhooks, pending and dead notifications',
            load: async () => (await import('../commands/a2a/push.js')).listPush
          },
          {
            name: 'retry',
            args: '[id]',
            about: 'try a notification again, now; it may wait or have been given up',
            options: [{ flags: '--all', about: 'all that were given up' }],
            load: async () => (await import('../commands/a2a/push.js')).retryPush
          }
        ]
      },
      CLIENT,
      OAUTH
    ]
  }
]
