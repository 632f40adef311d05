import NoiseSecretStream from '@hyperswarm/secret-stream'
import type { KeyPair, NoiseStream } from 'hyperswarm'
import { BoundedMap } from '../../../kit/bounded.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { keyToText, type NodeId } from '../../../kit/ids.js'
import type { Discovery } from '../discovery/lan-discovery.js'
import type { PeerBytes } from './peer-bytes.js'
import { Redial } from './redial.js'
import type { StreamDirection, StreamTransport } from './stream-transport.js'

/** Milliseconds until a handshake is done, at most. */
const HANDSHAKE_MS = 10_000
/**
 * Handshakes of strangers under way, and second streams of peers that have sent nothing, at most; the oldest ends for a
 * further one, which may be of a member.
 */
const MAX_HANDSHAKES = 32
/** Bytes of the first message of a second stream, at most: before it is complete, nothing else bounds it. */
const FIRST_MESSAGE_BYTES = 262_144
/** Addresses of one peer that are tried at once, at most. */
const MAX_ADDRESSES = 10
/** Own addresses of peers whose fault is remembered, at most: each new link may add one. */
const MAX_FAULTS = 1280
/** Addresses at which nodes were found that are remembered, at most. */
const MAX_MET = 64

/** The state of one address of `via`. */
export interface ViaState {
  readonly url: string
  /** The node that answered there last; null for none. */
  readonly peer: NodeId | null
  /** Why it cannot be used; null while it can, and before the first try has ended. */
  readonly fault: string | null
}

/** How an address is dialled. */
export interface AddressDial {
  /** Does another member name the address? Then it must not be one of this machine alone. */
  readonly isForeign: boolean
  readonly clock: Clock
  /** Ends the try. */
  readonly signal: AbortSignal
}

/** Accepts connections of other nodes. */
export interface Acceptor {
  /** The one handler of accepted connections; null refuses them. */
  onBytes(handler: ((bytes: PeerBytes) => void) | null): void
}

/** Addresses of a peer: those that its card names may be of any machine, the others were given or worked here. */
export interface PeerAddresses {
  readonly own: readonly string[]
  readonly foreign: readonly string[]
}

/** Dependencies of {@link AddressedTransport}. */
export interface AddressedTransportDeps {
  readonly keyPair: KeyPair
  readonly clock: Clock
  /** Milliseconds between keep-alives. */
  readonly keepAliveMs: number
  /** null: this node only dials. */
  readonly acceptor: Acceptor | null
  /** Addresses that are dialled all the time; any node may answer. */
  readonly via: readonly string[]
  addressesOf(peer: NodeId): PeerAddresses
  /** Opens a connection. @throws Error when it does not open */
  open(address: string, dial: AddressDial): Promise<PeerBytes>
  /** Finds addresses of nodes that listen on the same topic. Absent: nothing does. */
  readonly discovery?: Discovery | undefined
  /** May addresses that peers name be of this machine alone? */
  readonly isLocal: boolean
  /** Milliseconds between two tries of a peer, at most. Default 30,000. */
  readonly maxWaitMs?: number
}

interface Dial {
  /** Null: any node. */
  readonly peer: NodeId | null
  readonly signal: AbortSignal
  readonly isForeign: boolean
}

interface Dialled {
  /** Null when it is not open; without a fault the peer has one already. */
  readonly stream: NoiseStream | null
  readonly peer: NodeId | null
  readonly fault: string | null
}

/** Noise streams over connections to addresses: TCP or WebSockets. Without discovery it finds no peers. */
export class AddressedTransport implements StreamTransport {
  readonly #deps: AddressedTransportDeps
  readonly #nodeId: NodeId
  readonly #streams = new Map<NodeId, NoiseStream>()
  readonly #dialled = new Map<NodeId, Redial>()
  readonly #via = new Map<string, ViaState>()
  readonly #viaDials: Redial[] = []
  readonly #handshakes = new Set<PeerBytes>()
  /** Of the last dial of each own address of a peer. */
  readonly #faults = new BoundedMap<string, string>(MAX_FAULTS)
  /** The node at each found address; null while it is dialled. */
  readonly #met = new BoundedMap<string, NodeId | null>(MAX_MET)
  readonly #closing = new AbortController()
  #isClosed = false
  #handler: (stream: NoiseStream) => void = () => {}
  #admits: (peer: NodeId, direction: StreamDirection) => boolean = () => true
  /** Has the peer a stream of another transport? */
  #isLinked: (peer: NodeId) => boolean = () => false

  constructor(deps: AddressedTransportDeps) {
    this.#deps = deps
    this.#nodeId = keyToText(deps.keyPair.publicKey)
  }

  /** The state of each address of `via`. */
  via(): readonly ViaState[] {
    return [...this.#via.values()]
  }

  /** Why the last dial of an own address of a peer failed; null: it did not. */
  faultOf(address: string): string | null {
    return this.#faults.get(address) ?? null
  }

  listen(topic: Uint8Array): Promise<void> {
    this.#deps.discovery?.join(topic)
    this.#deps.acceptor?.onBytes((bytes) => void this.#accept(bytes))
    return Promise.resolve()
  }

  refresh(): void {
    for (const one of this.#viaDials) one.now()
    this.#deps.discovery?.look()
  }

  dial(peer: NodeId): void {
    const known = this.#dialled.get(peer)
    if (known !== undefined) return known.now()
    if (this.#isClosed) return
    const { clock, maxWaitMs } = this.#deps
    this.#dialled.set(peer, new Redial(clock, (signal) => this.#tryPeer(peer, signal), maxWaitMs))
  }

  undial(peer: NodeId): void {
    this.#dialled.get(peer)?.stop()
    this.#dialled.delete(peer)
  }

  /** Dialling of `via` begins: a newcomer needs streams before it may listen. */
  onStream(handler: (stream: NoiseStream) => void): void {
    this.#handler = handler
    this.#deps.discovery?.onFound((address) => void this.#meet(address))
    for (const url of this.#deps.via) {
      this.#via.set(url, { url, peer: null, fault: null })
      this.#viaDials.push(new Redial(this.#deps.clock, (signal) => this.#tryVia(url, signal)))
    }
  }

  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void {
    this.#admits = admits
  }

  /** Peers with a stream of another transport are not dialled at the addresses of `via`. */
  linkedBy(isLinked: (peer: NodeId) => boolean): void {
    this.#isLinked = isLinked
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#closing.abort()
    this.#deps.discovery?.close()
    this.#deps.acceptor?.onBytes(null)
    for (const one of [...this.#viaDials, ...this.#dialled.values()]) one.stop()
    for (const one of [...this.#handshakes, ...this.#streams.values()]) one.destroy()
    return Promise.resolve()
  }

  /** Dials a found address once, unless its node is linked; any node may answer. */
  async #meet(address: string): Promise<void> {
    const known = this.#met.get(address)
    const isDone = known !== undefined && (known === null || this.#streams.has(known) || this.#isLinked(known))
    if (this.#isClosed || isDone) return
    this.#met.set(address, null)
    const { peer } = await this.#open(address, { peer: null, signal: this.#closing.signal, isForeign: false })
    if (peer === null) this.#met.delete(address)
    else this.#met.set(address, peer)
  }

  async #tryPeer(peer: NodeId, signal: AbortSignal): Promise<boolean> {
    if (this.#streams.has(peer) || !this.#admits(peer, 'out')) return false
    const race = new AbortController()
    const stop = (): void => race.abort()
    signal.addEventListener('abort', stop)
    const { own, foreign } = this.#deps.addressesOf(peer)
    const dial = { peer, signal: race.signal }
    const tries = [...new Set([...own, ...foreign])].slice(0, MAX_ADDRESSES).map(async (address) => {
      const isOwn = own.includes(address)
      const { stream, fault } = await this.#open(address, { ...dial, isForeign: !this.#deps.isLocal && !isOwn })
      if (fault === null) this.#faults.delete(address)
      else if (isOwn && !race.signal.aborted) this.#faults.setNewest(address, fault)
      return stream
    })
    // At once: an address may be one of a network that is not here, and never answer.
    const stream = await firstOf(tries)
    signal.removeEventListener('abort', stop)
    race.abort()
    return stream === null ? false : await ended(stream)
  }

  async #tryVia(url: string, signal: AbortSignal): Promise<boolean> {
    const known = this.#via.get(url)?.peer ?? null
    if (known !== null && (this.#streams.has(known) || this.#isLinked(known))) return false
    const { stream, peer, fault } = await this.#open(url, { peer: null, signal, isForeign: false })
    if (signal.aborted) return false
    this.#via.set(url, { url, peer: peer ?? known, fault })
    return stream === null ? false : await ended(stream)
  }

  async #open(address: string, { peer: wanted, signal, isForeign }: Dial): Promise<Dialled> {
    try {
      const bytes = await this.#deps.open(address, { isForeign, clock: this.#deps.clock, signal })
      const stream = await this.#secure(bytes, signal)
      if (stream === null) return failed('the program that answers there is no node')
      const peer = keyToText(stream.remotePublicKey)
      const fault = this.#dialFault(peer, wanted)
      // Another address of it was faster, or this one was found and the peer is here already.
      const former = this.#streams.get(peer)
      const isSecond = former !== undefined && (former.isInitiator || wanted === null)
      if (fault === null && !isSecond && !this.#isLinked(peer) && this.#opened(peer, stream))
        return { stream, peer, fault: null }
      stream.destroy()
      return { stream: null, peer, fault }
    } catch (error) {
      return failed(messageOf(error))
    }
  }

  #dialFault(found: NodeId, wanted: NodeId | null): string | null {
    if (found === this.#nodeId) return 'this node itself answers there'
    if (wanted !== null && found !== wanted) return 'another node answers there'
    return this.#admits(found, 'out') ? null : 'this node admits no stream of the node that answers there'
  }

  async #accept(bytes: PeerBytes): Promise<void> {
    const [oldest] = this.#handshakes
    if (this.#handshakes.size >= MAX_HANDSHAKES) oldest?.destroy()
    if (oldest?.destroyed === true) this.#handshakes.delete(oldest)
    this.#handshakes.add(bytes)
    const stream = await this.#secure(bytes, null)
    const isUsed = stream !== null && (await this.#isUsed(stream, bytes))
    this.#handshakes.delete(bytes)
    if (stream !== null && (!isUsed || !this.#opened(keyToText(stream.remotePublicKey), stream))) stream.destroy()
  }

  async #isUsed(stream: NoiseStream, bytes: PeerBytes): Promise<boolean> {
    const peer = keyToText(stream.remotePublicKey)
    if (peer === this.#nodeId || !this.#admits(peer, 'in')) return false
    const former = this.#streams.get(peer)
    if (former === undefined || (former.isInitiator && !this.#isKept(peer, stream))) return true
    // A peer that looked for another node, or for any, ends the new stream, and still uses the former.
    return await hasSpoken(stream, bytes, this.#deps.clock)
  }

  /** The stream after its handshake; null when it failed or took too long. `signal`: of a dialled one, ends it. */
  async #secure(bytes: PeerBytes, signal: AbortSignal | null): Promise<NoiseStream | null> {
    const { keyPair, keepAliveMs, clock } = this.#deps
    const stream = new NoiseSecretStream(signal !== null, bytes, { keyPair, keepAlive: keepAliveMs })
    stream.on('error', () => {})
    const abort = (): void => stream.destroy()
    const timer = clock.after(HANDSHAKE_MS, abort)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
    const isOpen = await stream.opened
    clock.clear(timer)
    signal?.removeEventListener('abort', abort)
    return isOpen && !stream.destroying ? stream : null
  }

  /** Keeps one stream to a peer; false: not this one. */
  #opened(peer: NodeId, stream: NoiseStream): boolean {
    // One that has ended would stay in the table for ever: its end is not reported again.
    if (this.#isClosed || stream.destroying) return false
    const former = this.#streams.get(peer)
    // A peer that opens another one has lost the former. Of two that each end opened, both ends keep the same one.
    if (former !== undefined && former.isInitiator !== stream.isInitiator && !this.#isKept(peer, stream)) return false
    this.#streams.set(peer, stream)
    former?.destroy()
    stream.on('close', () => {
      if (this.#streams.get(peer) === stream) this.#streams.delete(peer)
    })
    this.#handler(stream)
    return true
  }

  #isKept(peer: NodeId, { isInitiator }: NoiseStream): boolean {
    return isInitiator === this.#nodeId > peer
  }
}

/** The first stream; null when there is none. */
async function firstOf(tries: readonly Promise<NoiseStream | null>[]): Promise<NoiseStream | null> {
  const opened = tries.map(async (one) => (await one) ?? Promise.reject(new Error('it is not open')))
  return await Promise.any(opened).catch(() => null)
}

function failed(fault: string): Dialled {
  return { stream: null, peer: null, fault }
}

/**
 * Resolves with true when the peer sends, as it does on a stream that it keeps; with false when the stream closes, at
 * the latest after 10 s.
 */
function hasSpoken(stream: NoiseStream, bytes: PeerBytes, clock: Clock): Promise<boolean> {
  const timer = clock.after(HANDSHAKE_MS, () => stream.destroy())
  return new Promise((resolve) => {
    const end = (isSpoken: boolean): void => {
      clock.clear(timer)
      bytes.off('data', look)
      resolve(isSpoken)
    }
    const look = (): void => {
      if (stream._len > FIRST_MESSAGE_BYTES) stream.destroy()
      else if (stream.rawBytesRead > 0) end(true)
    }
    stream.once('close', () => end(false))
    bytes.on('data', look)
    look()
  })
}

/** Resolves with true when the stream is closed. */
function ended(stream: NoiseStream): Promise<true> {
  return new Promise((resolve) => {
    if (stream.destroyed) resolve(true)
    else stream.once('close', () => resolve(true))
  })
}
