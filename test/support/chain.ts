import type { Assert } from 'brittle'
import { encodeMessage, encodeWhole, type RelayableMessage } from '../../src/domain/channel/frames.js'
import { passedOn, type RelayedFrame, signRelayed } from '../../src/domain/channel/relayed.js'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import type { A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import type { InviteTerms } from '../../src/domain/membership/types.js'
import type { NodeSettings } from '../../src/node/dependencies.js'
import { echo, type FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'
import { envelope, sendFrames } from './forge.js'
import { type Actor, hash, MESH } from './membership.js'

/** Three nodes of which the first and the last reach each other only through the one between. */
export interface Chain {
  readonly world: World
  readonly a: FakeNode
  readonly b: FakeNode
  readonly c: FakeNode
  /** `text` of the last. */
  readonly agent: FakeAgent
}

/** How the nodes of a chain are; L1 unless told otherwise. */
export interface ChainOptions {
  readonly terms?: {
    readonly a?: Partial<InviteTerms>
    readonly b?: Partial<InviteTerms>
    readonly c?: Partial<InviteTerms>
  }
  readonly settings?: { readonly b?: Partial<NodeSettings>; readonly c?: Partial<NodeSettings> }
  readonly policy?: { readonly b?: string; readonly c?: string }
  readonly agent?: FakeAgent
}

/** Starts them and links neighbours. */
export async function chain(
  t: Assert,
  { terms = {}, settings = {}, policy = {}, agent = echo('text') }: ChainOptions = {}
): Promise<Chain> {
  const world = new World(t)
  const a = await world.member('a', { terms: terms.a ?? {}, agents: [echo('text')] })
  const b = await world.member('b', { terms: terms.b ?? {}, settings: settings.b ?? {}, policy: policy.b ?? '' })
  const c = await world.member('c', {
    terms: terms.c ?? {},
    settings: settings.c ?? {},
    policy: policy.c ?? '',
    agents: [agent]
  })
  await world.link(a, b)
  await world.link(b, c)
  return { world, a, b, c, agent }
}

/** How a frame goes: who signs it for whom, and whose keys are put on it. */
export interface Forging {
  readonly to: FakeNode
  readonly changes?: Partial<A2AEnvelope>
  readonly signer?: Actor
  readonly firstHop: FakeNode
  readonly hops: readonly FakeNode[]
  readonly mesh?: string
  /** When it is signed; default: now. */
  readonly at?: number
  /** What is relayed; default: an envelope of the operator of `from`, with `changes`. */
  readonly message?: RelayableMessage
}

/** A frame of `from` as the nodes whose keys it bears would relay it. */
export function relayed(
  world: World,
  from: FakeNode,
  { to, changes = {}, signer = from.actor, firstHop, hops, mesh = MESH, at = world.clock.now(), message }: Forging
): RelayedFrame {
  const sent = message ?? {
    kind: 'envelope',
    bytes: encodeEnvelope(envelope(from, to, { metadata: { tier: 1 }, ...changes }))
  }
  const frame = { origin: from.id, target: to.id, timestamp: at, content: encodeWhole(sent) }
  const signed = signRelayed(frame, { mesh, firstHop: firstHop.id, hash, sign: signer.sign })
  return hops.reduce((so, hop) => passedOn(so, hop.id), signed)
}

/** Puts a relayed frame on a link, past every rule of the node that sends it. */
export function put(from: FakeNode, to: FakeNode, frame: RelayedFrame): void {
  sendFrames(
    from,
    to,
    encodeMessage({ kind: 'relayed', frame }, () => 1)
  )
}
