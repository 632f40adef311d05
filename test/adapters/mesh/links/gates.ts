import type { Assert } from 'brittle'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import { Gate, type CutCode, type GateIdentity } from '../../../../src/adapters/mesh/links/gate.js'
import {
  decodeGateMessage,
  encodeGateMessage,
  type GateMessage,
  type GateRefusal,
  meshProof
} from '../../../../src/adapters/mesh/links/hello.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import type { Clock } from '../../../../src/kit/clock.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { chainOf } from '../../../../src/domain/membership/chain.js'
import type { CertificateChain, MembershipView, SignedCertificate } from '../../../../src/domain/membership/types.js'
import { type Actor, actor, founded, hash, type LogModel, verify } from '../../../support/membership.js'
import { streamPair } from '../stream-pair.js'

const owner = actor('owner')

/** What a node is in its mesh, to be changed by the test. */
export class Identity implements GateIdentity {
  meshKey = new Uint8Array(32).fill(1)
  encryptionKey = new Uint8Array(32).fill(2)
  ready = true
  full = false
  readonly grants: CertificateChain[] = []
  readonly refusals: { readonly refusal: GateRefusal; readonly peer: NodeId }[] = []

  constructor(
    public viewNow: MembershipView,
    public chainNow: CertificateChain | null
  ) {}

  view = (): MembershipView => this.viewNow
  isReady: () => boolean = () => this.ready
  isFull = (): boolean => this.full
  chain = (): CertificateChain | null => this.chainNow
  onGrant = (chain: CertificateChain): void => void this.grants.push(chain)
  onRefused = (refusal: GateRefusal, peer: NodeId): void => void this.refusals.push({ refusal, peer })
}

/** A gate and how it ends. */
export interface End {
  readonly gate: Gate
  readonly mux: Protomux
  readonly stream: NoiseStream
  readonly passed: Promise<{ software: string; certificate: SignedCertificate }>
  readonly cut: Promise<{ code: CutCode; reason: string }>
  /** How often each was called. */
  readonly calls: { passed: number; cut: number }
}

export function openGate(stream: NoiseStream, identity: GateIdentity | null, clock: Clock = systemClock()): End {
  const mux = Protomux.from(stream)
  const calls = { passed: 0, cut: 0 }
  let gate: Gate | null = null
  let cut: End['cut'] | null = null
  const passed = new Promise<{ software: string; certificate: SignedCertificate }>((onPassed) => {
    cut = new Promise((onCut) => {
      gate = new Gate(
        {
          stream,
          mux,
          software: `test/${stream.isInitiator}`,
          clock,
          hash,
          verify,
          onPassed: (software, shown) => {
            calls.passed++
            onPassed({ software, certificate: shown })
          },
          onCut: (code, reason) => {
            calls.cut++
            onCut({ code, reason })
          }
        },
        identity
      )
    })
  })
  return { gate: gate as unknown as Gate, mux, stream, passed, cut: cut as unknown as End['cut'], calls }
}

export async function gates(
  t: Assert,
  [a, b]: readonly [string, string],
  [ofA, ofB]: readonly [GateIdentity | null, GateIdentity | null]
): Promise<[End, End]> {
  const [streamA, streamB] = await streamPair(t, a, b)
  return [openGate(streamA, ofA), openGate(streamB, ofB)]
}

/** A gate and, at the other end, nothing but the channel. */
export async function againstNobody(
  t: Assert,
  identity: GateIdentity,
  { as = actor('ann'), clock }: { readonly as?: Actor; readonly clock?: Clock } = {}
): Promise<{
  end: End
  say: (message: GateMessage | Uint8Array) => void
  heard: () => Promise<GateMessage>
  peer: NoiseStream
}> {
  const [stream, peer] = await streamPair(t, 'owner', as.name)
  const heard: GateMessage[] = []
  let wake: () => void = () => {}
  const onmessage = (raw: Uint8Array): void => {
    heard.push(decodeGateMessage(raw) as GateMessage)
    wake()
  }
  const channel = Protomux.from(peer).createChannel({ protocol: 'a2a-node/gate', messages: [{ onmessage }] })
  channel?.open()
  const end = openGate(stream, identity, clock)
  await channel?.fullyOpened()
  return {
    end,
    peer,
    say: (message) => channel?.messages[0]?.send(message instanceof Uint8Array ? message : encodeGateMessage(message)),
    heard: async () => {
      while (heard.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return heard.shift() as GateMessage
    }
  }
}

/** The hello of one that knows the mesh of {@link Identity}. */
export function provenHello({ handshakeHash, isInitiator }: NoiseStream): GateMessage & { readonly type: 'hello' } {
  const { meshKey, encryptionKey } = meshOf().of(owner)
  const proof = meshProof({ meshKey, encryptionKey, handshakeHash, isInitiator }, hash)
  return { type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof }
}

/** Resolves when each end has read what the other has sent by now. */
export async function heardAll(a: Protomux, b: Protomux): Promise<void> {
  const [atA, atB] = [a, b].map((mux) => mux.createChannel({ protocol: 'behind it' }))
  atA?.open()
  atB?.open()
  await Promise.all([atA?.fullyOpened(), atB?.fullyOpened()])
}

export function meshOf(...members: readonly Actor[]): { log: LogModel; of: (node: Actor) => Identity } {
  const log = founded()
  for (const member of members) log.join(owner, member)
  return { log, of: (node) => new Identity(log.view(), chainOf(log.view(), node.id)) }
}
