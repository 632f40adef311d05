import v8 from 'node:v8'
import vm from 'node:vm'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import fc from 'fast-check'
import crypto from 'hypercore-crypto'
import type { KeyPair, NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import { Gate, type GateIdentity } from '../../../src/adapters/mesh/links/gate.js'
import { hash, verify } from '../../../src/adapters/mesh/network/sodium.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import type { Clock } from '../../../src/kit/clock.js'
import { chainOf } from '../../../src/domain/membership/chain.js'
import { seal } from '../../../src/domain/membership/signing.js'
import { cardBody } from '../../support/membership.js'
import { holds } from '../../support/holds.js'
import { Uncaught } from '../../support/uncaught.js'
import { inviteCode, type Lab, type LabNode, meshLab, type NodeOptions, untilView } from './lab.js'
import { openPair } from './stream-pair.js'

/** What the links open for themselves behind the gate; a peer that refuses them is cut. */
const OWN_CHANNELS = ['a2a-node/a2a', 'a2a-node/log']
/**
 * Time that passes for the node between two streams, in milliseconds: rates and strikes of the one before are
 * forgotten.
 */
const BETWEEN_STREAMS_MS = 30 * 24 * 3_600_000
/** A stream that the node paused is cut after this time, in milliseconds. */
const STUCK_MS = 2000
/**
 * How long the store of the node under attack may take to close, in milliseconds: after thousands of streams of hostile
 * replication a read of Hypercore stays open in it, and it never closes.
 */
const STORE_CLOSE_MS = 3000
/** What inputs may hold in the end beside what was there before, in bytes. */
const MAX_MORE_BYTES = 64 * 1024 * 1024

/**
 * The peer's end of an encrypted stream to the node under attack, which took it as it takes each stream of its swarm.
 */
export interface WireEnd {
  readonly stream: NoiseStream
  readonly mux: Protomux
  /** Writes a frame, unless the stream has ended. */
  write(frame: Uint8Array): void
  /** Sends what is written, and resolves when the node has read it, or cut the stream. */
  end(): Promise<void>
}

/** A node under attack, an honest member with a link to it, and a member whose key the test holds. */
export interface WireScene {
  readonly lab: Lab
  readonly node: LabNode
  readonly friend: LabNode
  readonly evil: LabNode
  /** A stream of the evil member, through the gate. `prepare`: adds to its end before the node may open channels. */
  member(prepare?: (end: WireEnd) => void): Promise<WireEnd>
  /** A stream of a key that no one knows. `prepare` as in `member`. */
  stranger(prepare?: (end: WireEnd) => void): Promise<WireEnd>
  /**
   * Asserts that `survive` resolves for that many inputs, that nothing is thrown meanwhile which nobody catches, that
   * memory stays within bounds, and that the honest pair exchanges a frame and an entry of the log afterwards.
   */
  survives<T>(
    inputs: fc.Arbitrary<T>,
    attack: { readonly runs: number; readonly survive: (input: T) => Promise<void>; readonly keptBytes?: number }
  ): Promise<void>
}

/** Begins the scene. The evil node is in the mesh, with its store, and its own links never start. */
export async function wireScene(t: Assert, options: NodeOptions = {}): Promise<WireScene> {
  const lab = await meshLab(t)
  const time = jumpingClock()
  const node = await lab.found('node', { ...options, clock: time.clock, storeCloseMs: STORE_CLOSE_MS })
  await node.start()
  const friend = await lab.member('friend', node)
  const evil = await lab.join('evil', await inviteCode(node))
  await untilView(node, (view) => view.members.has(evil.id))
  const keys = { node: await keysOf(node), evil: await keysOf(evil) }
  const wire = async (keyPair: KeyPair, prepare: (end: WireEnd) => void): Promise<WireEnd> => {
    time.jump()
    const [stream, other] = await openPair(keyPair, keys.node)
    const end = wireEnd(stream, other)
    prepare(end)
    takeStream(node, other)
    return end
  }
  return {
    lab,
    node,
    friend,
    evil,
    stranger: (prepare = () => {}) =>
      wire(crypto.keyPair(), (made) => {
        // Who does not open it is cut.
        made.mux.createChannel({ protocol: 'a2a-node/gate', messages: [{ encoding: c.raw }] })?.open()
        prepare(made)
      }),
    member: async (prepare = () => {}) => {
      let passed: Promise<void> = Promise.resolve()
      const end = await wire(keys.evil, (made) => {
        passed = throughGate(made, node, evil)
        prepare(made)
      })
      await passed
      return end
    },
    survives: async (inputs, { runs, survive, keptBytes = 0 }) => {
      const uncaught = new Uncaught()
      const before = heldBytes()
      const property = fc.asyncProperty(inputs, async (input) => {
        await survive(input)
        await turns()
        forgetClosed(node)
        uncaught.check()
      })
      await uncaught.during(() => holds(t, property, runs))
      const more = heldBytes() - before
      t.ok(more < MAX_MORE_BYTES + runs * keptBytes, `${Math.round(more / 1024)} KiB more than before`)
      await goesOn(node, friend)
    }
  }
}

/** What the test wrote down of links that are closed would hold their streams. */
function forgetClosed({ seen, refused }: LabNode): void {
  const open = seen.opened.filter(({ closed }) => !closed)
  seen.opened.splice(0, seen.opened.length, ...open)
  seen.closed.splice(0)
  seen.rested.splice(0)
  seen.frames.splice(0)
  refused.splice(0, refused.length - 1)
}

/** Bytes that are in use once all garbage is gone. */
function heldBytes(): number {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc') as () => void
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function keysOf({ store }: LabNode): Promise<KeyPair> {
  return await store.createKeyPair('a2a-node/node')
}

/** A clock whose monotonic time can jump; its timers run as ever. */
function jumpingClock(): { readonly clock: Clock; jump(): void } {
  const clock = systemClock()
  let ahead = 0
  return {
    clock: { ...clock, now: () => clock.now(), monotonic: () => clock.monotonic() + ahead },
    jump: () => void (ahead += BETWEEN_STREAMS_MS)
  }
}

function wireEnd(stream: NoiseStream, other: NoiseStream): WireEnd {
  const mux = Protomux.from(stream)
  const closed = Promise.all([stream, other].map((one) => new Promise<void>((resolve) => one.once('close', resolve))))
  const end = async (): Promise<void> => {
    stream.end()
    const timer = setTimeout(() => stream.destroy(), STUCK_MS)
    await closed
    clearTimeout(timer)
  }
  const write = (frame: Uint8Array): void => {
    if (!stream.destroying) stream.write(frame)
  }
  return { stream, mux, write, end }
}

/** Hands a stream to a node as its swarm does. */
function takeStream({ swarm }: LabNode, stream: NoiseStream): void {
  const connections = swarm.connections as Set<NoiseStream>
  connections.add(stream)
  stream.once('close', () => connections.delete(stream))
  const emit = swarm as unknown as { emit(event: 'connection', stream: NoiseStream, info: object): void }
  emit.emit('connection', stream, {})
}

/** Resolves when both ends of the stream are satisfied, and the links of the node have the channels that they need. */
async function throughGate({ stream, mux }: WireEnd, node: LabNode, evil: LabNode): Promise<void> {
  const opened = OWN_CHANNELS.map(
    (protocol) =>
      new Promise<void>((resolve) => {
        mux.pair({ protocol }, () => {
          const messages = Array.from({ length: 2 }, () => ({ encoding: c.raw }))
          mux.createChannel({ protocol, messages, onopen: () => resolve() })?.open()
        })
      })
  )
  const { log } = node.mesh
  const identity: GateIdentity = {
    meshKey: log.key,
    encryptionKey: log.encryptionKey,
    view: () => log.view(),
    isReady: () => true,
    isFull: () => false,
    chain: () => chainOf(log.view(), evil.id),
    onGrant: () => {},
    onRefused: () => {}
  }
  await new Promise<void>((resolve, reject) => {
    const onCut = (code: string, reason: string): void => reject(new Error(`${code}: ${reason}`))
    const gate = new Gate(
      { stream, mux, software: 'evil', clock: systemClock(), hash, verify, onPassed: () => resolve(), onCut },
      identity
    )
    if (gate.peer !== node.id) reject(new Error('another node'))
  })
  await Promise.all(opened)
}

/** Resolves when a frame went from one to the other, and an entry of the log back. */
async function goesOn(node: LabNode, friend: LabNode): Promise<void> {
  const frame = Uint8Array.of(7, 8, 9)
  const link = await node.seen.link(friend.id)
  link.send(frame)
  await friend.seen.until(() =>
    friend.seen.frames.some((one) => one.link.peer === node.id && Buffer.compare(one.frame, frame) === 0)
  )
  const { id, mesh } = friend
  await mesh.log.submit({
    kind: 'card',
    mesh: mesh.meshId,
    card: seal('card', cardBody('after'), { id, sign: mesh.sign })
  })
  await untilView(node, (view) => view.cards.get(id)?.has('after') === true)
}

/** Lets tasks run that are due now. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
