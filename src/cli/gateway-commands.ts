import type { CommandSpec } from './table.js'

/** Commands about what the node offers to programs that are no nodes. */
export const GATEWAY_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'a2a',
    about: 'access for programs that use this node over HTTP',
    group: 'Gateways',
    sub: [
      {
        name: 'token',
        about: 'tokens by which they call',
        sub: [
          {
            name: 'create',
            about: 'make a token; it is shown this once',
            options: [
              { flags: '--name <name>', about: 'what it is for' },
              { flags: '--tier <tier>', about: 'who calls with it has at most this tier, L0..L3 (default: that of this node)' },
              { flags: '--sandbox <id>', about: 'confine it to a sandbox' },
              {
                flags: '--scope <list>',
                about: 'what it may do: read,send,admin (default: all; with --tier or --sandbox read,send)'
              },
              { flags: '--ttl <duration>', about: 'how long it works (default: until it is revoked)' }
            ],
            more: [
              'Clients send it as "Authorization: Bearer <token>".',
              '',
              'Example: a2a-node a2a token create --name editor --tier L2 --ttl 12h'
            ],
            load: async () => (await import('./commands/a2a.js')).createToken
          },
          { name: 'ls', about: 'the tokens of this node', load: async () => (await import('./commands/a2a.js')).listTokens },
          {
            name: 'revoke',
            args: '<id>',
            about: 'end a token at once, with what is open under it',
            load: async () => (await import('./commands/a2a.js')).revokeToken
          }
        ]
      },
      {
        name: 'push',
        about: 'push notifications to webhooks of A2A clients',
        sub: [
          {
            name: 'ls',
            about: 'who wants to be told, what waits to be sent, and what was given up',
            load: async () => (await import('./commands/a2a-push.js')).listPush
          },
          {
            name: 'retry',
            args: '[id]',
            about: 'try a notification again, now; it may wait or have been given up',
            options: [{ flags: '--all', about: 'all that were given up' }],
            load: async () => (await import('./commands/a2a-push.js')).retryPush
          }
        ]
      }
    ]
  }
]
