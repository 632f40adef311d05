import type { NoiseStream } from 'hyperswarm'
import type { NodeId } from '../../../kit/ids.js'
import type { EntryRelay } from '../log/entry-relay.js'
import type { FrameGuard } from './frame-guard.js'
import type { Gate } from './gate.js'
import type { StreamLink } from './link.js'

/** One stream to another node, from its first byte on. */
export interface PeerStream {
  readonly stream: NoiseStream
  readonly peer: NodeId
  /** Was its key a member's when it came, by this node's view? */
  readonly isMember: boolean
  guard: FrameGuard | null
  gate: Gate | null
  /** The session behind the gate; null for a stranger. */
  session: null | { readonly link: StreamLink; readonly relay: EntryRelay }
}
