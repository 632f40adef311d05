import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import type { NoiseStream } from 'hyperswarm'
import type { Channel } from 'protomux'
import type Protomux from 'protomux'
import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { FIRST_CREDIT } from '../../../domain/channel/credit.js'
import type { SignedCertificate } from '../../../domain/membership/types.js'
import type { Link, LinkPath } from '../../../ports/mesh.js'

/** Largest frame that is taken, in bytes. */
export const MAX_FRAME_BYTES = 1024 * 1024
/**
 * Bytes of frames that are sent together: with their overhead they fill one packet. Several packets take far longer.
 */
const MAX_GATHERED_BYTES = 1100
/** Bytes of a message that gives credit, at most. */
const GRANT_BYTES = 9

/** A peer's version of flow control, sent as it opens the channel; null from an older peer. */
const FLOW_CONTROL: Codec<number | null> = {
  preencode: (state, version) => c.uint8.preencode(state, version ?? 0),
  encode: (state, version) => c.uint8.encode(state, version ?? 0),
  decode: (state) => (state.start < state.end ? c.uint8.decode(state) : null)
}
/** The flow control of domain/channel/credit. */
const FLOW_CONTROL_VERSION = 1

/** Dependencies of {@link StreamLink}. */
export interface LinkDeps {
  readonly id: number
  readonly peer: NodeId
  readonly peerVersion: string
  readonly certificate: SignedCertificate
  readonly stream: NoiseStream
  readonly mux: Protomux
  onFrame(link: Link, frame: Uint8Array): void
  /** {@link Link.credit} changed. */
  onCredit(link: Link): void
  /** The peer broke the protocol: the stream must be cut, since the peer's data is lost. */
  onMalformed(reason: string): void
  onChannelClosed(): void
}

/** The A2A channel of one admitted stream. */
export class StreamLink implements Link {
  readonly id: number
  readonly peer: NodeId
  readonly path: LinkPath
  readonly peerVersion: string
  readonly certificate: SignedCertificate
  readonly #deps: LinkDeps
  readonly #channel: Channel | null
  #isClosed = false
  #closeReason: string | null = null
  #isResting = false
  #waiting: (() => void)[] = []
  #credit: number | null = FIRST_CREDIT
  /** Bytes of the frames that leave at the end of this turn; null for none. */
  #gathered: number | null = null

  constructor(deps: LinkDeps) {
    this.id = deps.id
    this.peer = deps.peer
    this.path = pathOf(deps.stream)
    this.peerVersion = deps.peerVersion
    this.certificate = deps.certificate
    this.#deps = deps
    this.#channel = deps.mux.createChannel({
      protocol: 'a2a-node/a2a',
      handshake: FLOW_CONTROL,
      messages: [
        { encoding: c.raw, onmessage: (frame) => this.#received(frame) },
        { encoding: c.raw, onmessage: (grant) => this.#granted(grant) }
      ],
      onopen: (version) => {
        if (version === null) this.#credited(null)
      },
      ondrain: () => this.#wake(),
      onclose: () => this.#channelClosed()
    })
    if (this.#channel === null) this.#isClosed = true
    else this.#channel.open(FLOW_CONTROL_VERSION)
  }

  get closed(): boolean {
    return this.#isClosed
  }

  rttMs(): number | null {
    const rtt = this.#deps.stream.rawStream?.rtt ?? 0
    return rtt === 0 ? null : rtt
  }

  /** Small frames of one turn leave as one: each on its own would be encrypted and written apart. */
  send(frame: Uint8Array): boolean {
    if (this.#isClosed) return false
    this.#gather(frame.byteLength)
    const isTaken = this.#channel?.messages[0]?.send(frame) === true
    return isTaken && this.#deps.mux.drained
  }

  get credit(): number | null {
    return this.#credit
  }

  grant(limit: number): void {
    if (this.#isClosed) return
    this.#gather(GRANT_BYTES)
    this.#channel?.messages[1]?.send(c.encode(c.uint, limit))
  }

  #gather(bytes: number): void {
    if (this.#gathered !== null && this.#gathered + bytes > MAX_GATHERED_BYTES) this.#flush()
    if (this.#gathered === null) {
      this.#gathered = 0
      this.#deps.mux.cork()
      process.nextTick(() => this.#flush())
    }
    this.#gathered += bytes
  }

  #flush(): void {
    if (this.#gathered === null) return
    this.#gathered = null
    this.#deps.mux.uncork()
  }

  drained(): Promise<void> {
    if (this.#isClosed || this.#deps.mux.drained) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  close(reason: string): void {
    this.#closeReason ??= reason
    this.#flush()
    this.#deps.stream.destroy()
  }

  fault(reason: string): void {
    this.#deps.onMalformed(reason)
  }

  /** Takes nothing more to send: another link needs the slot. Data that the peer has sent is still read. */
  rest(): void {
    this.#isResting = true
    this.retire()
  }

  /** The same, since a better link to the peer takes over. */
  retire(): void {
    this.#flush()
    this.#isClosed = true
    this.#wake()
  }

  /** Did it end because it was idle? */
  get isResting(): boolean {
    return this.#isResting
  }

  /** Why this end cut it; null when it did not. */
  get closeReason(): string | null {
    return this.#closeReason
  }

  #received(frame: Uint8Array): void {
    // Frames that arrived together with the reason to cut the link are still read; ignore them.
    if (this.#closeReason !== null) return
    // Anything thrown in here would end the process.
    try {
      if (frame.byteLength > MAX_FRAME_BYTES) this.fault('a frame is too large')
      else this.#deps.onFrame(this, frame)
    } catch (error) {
      this.fault(messageOf(error))
    }
  }

  #granted(grant: Uint8Array): void {
    if (this.#closeReason !== null) return
    const limit = decodeGrant(grant)
    if (limit === null) this.fault('credit that cannot be read')
    else this.#credited(limit)
  }

  #credited(credit: number | null): void {
    this.#credit = credit
    this.#deps.onCredit(this)
  }

  #channelClosed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#wake()
    this.#deps.onChannelClosed()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

function decodeGrant(bytes: Uint8Array): number | null {
  try {
    const limit = c.decode(c.uint, bytes)
    return Number.isSafeInteger(limit) ? limit : null
  } catch {
    return null
  }
}

function pathOf(stream: NoiseStream): LinkPath {
  if (stream.rawStream?.path !== undefined) return stream.rawStream.path
  const host = stream.rawStream?.remoteHost ?? ''
  return host === '::1' || host.startsWith('127.') ? 'local' : 'direct'
}
