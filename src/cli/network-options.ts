import type { OptionSpec } from './terminal/table.js'

/** Which network a node that is started here uses. */
export const NETWORK_OPTIONS: readonly OptionSpec[] = [
  { flags: '--network <kind>', about: 'how members find each other', choices: ['public', 'private', 'local'] },
  { flags: '--bootstrap <list>', about: 'host:port,... of a private network' },
  { flags: '--serve-bootstrap <host:port>', about: 'serve a bootstrap node of a private network' },
  { flags: '--websocket <[host:]port>', about: 'let members connect by WebSocket there, where UDP does not pass' },
  { flags: '--via <list>', about: 'wss://host,... of members to connect to by WebSocket' }
]
