import type { NoiseStream } from 'hyperswarm'
import type { NodeId } from '../../../kit/ids.js'
import type { EntryRelay } from '../log/entry-relay.js'
import type { GateIdentity } from '../links/gate.js'

/** The parts of the log that the links use, once there is a log. */
export interface MeshBinding {
  readonly identity: Omit<GateIdentity, 'isReady' | 'isFull'>
  readonly topic: Uint8Array
  replicate(stream: NoiseStream): void
  appendFor(entry: Uint8Array, peer: NodeId): Promise<boolean>
  /** A link opened: waiting log entries may go now. */
  onLink(relay: Pick<EntryRelay, 'hand'>): void
}
