import type { Assert } from 'brittle'
import { encodeMessage } from '../../src/domain/channel/frames.js'
import { decodeEnvelope, encodeEnvelope } from '../../src/domain/envelope/codec.js'
import type { A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import { passedOn, type ReadEnvelope, signOrigin } from '../../src/domain/envelope/origin.js'
import type { InviteTerms } from '../../src/domain/membership/types.js'
import type { NodeSettings } from '../../src/node/parts.js'
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
  readonly terms?: { readonly a?: Partial<InviteTerms>; readonly b?: Partial<InviteTerms>; readonly c?: Partial<InviteTerms> }
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
  const c = await world.member('c', { terms: terms.c ?? {}, settings: settings.c ?? {}, policy: policy.c ?? '', agents: [agent] })
  await world.link(a, b)
  await world.link(b, c)
  return { world, a, b, c, agent }
}

/** What is read of an encoded envelope. @throws Error when it is none. */
export function readOf(bytes: Uint8Array): ReadEnvelope {
  const read = decodeEnvelope(bytes)
  if (!read.ok) throw new Error(read.reason)
  return read
}

/** How a message goes: who signs it for whom, and whose keys are put on it. */
export interface Forging {
  readonly to: FakeNode
  readonly changes?: Partial<A2AEnvelope>
  readonly signer?: Actor
  readonly firstHop: FakeNode
  readonly hops: readonly FakeNode[]
  readonly mesh?: string
}

/** A message of the operator of `from` as those whose keys it bears would carry it. */
export function carried(
  world: World,
  from: FakeNode,
  { to, changes = {}, signer = from.actor, firstHop, hops, mesh = MESH }: Forging
): Uint8Array {
  const bytes = encodeEnvelope(envelope(from, to, { timestamp: world.clock.now(), metadata: { tier: 1 }, ...changes }))
  const signed = signOrigin(bytes, { mesh, firstHop: firstHop.id, hash, sign: signer.sign })
  return hops.reduce((so, hop) => passedOn(readOf(so), so, hop.id), signed)
}

/** Puts an encoded envelope on a link, past every rule of the node that sends it. */
export function put(from: FakeNode, to: FakeNode, bytes: Uint8Array): void {
  sendFrames(
    from,
    to,
    encodeMessage({ kind: 'envelope', bytes }, () => 1)
  )
}
