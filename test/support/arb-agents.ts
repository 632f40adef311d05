import fc from 'fast-check'
import type { A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import { createLayer } from '../../src/node/sdk/layer.js'
import { capability } from './fake-agents.js'
import type { FakeNode, World } from './fake-node.js'

/** An id of a capability: dots and dashes, one the beginning of another. */
export const arbSkill = fc.oneof(
  fc.constantFrom('a', 'a.b', 'a.b.c', 'a-b', 'b'),
  fc.stringMatching(/^[a-z][a-z0-9]{0,6}(\.[a-z][a-z0-9-]{0,6}[a-z]){0,2}$/)
)

/** An agent to attach: the index of its node, and its capabilities. */
export interface DrawnAgent {
  readonly at: number
  readonly can: readonly string[]
}

/** Up to six agents on three nodes, with none to three capabilities each. */
export const arbAgents: fc.Arbitrary<readonly DrawnAgent[]> = fc.array(
  fc.record({ at: fc.nat(2), can: fc.uniqueArray(arbSkill, { maxLength: 3 }) }),
  { maxLength: 6 }
)

/** Skills of drawn agents, and now and then one that nobody may have. */
export function arbWanted(agents: readonly DrawnAgent[], max: number): fc.Arbitrary<readonly [string, ...string[]]> {
  const offered = [...new Set(agents.flatMap(({ can }) => can))]
  const one =
    offered.length === 0
      ? arbSkill
      : fc.oneof({ arbitrary: fc.constantFrom(...offered), weight: 5 }, { arbitrary: arbSkill, weight: 1 })
  return fc.uniqueArray(one, { minLength: 1, maxLength: max }) as fc.Arbitrary<readonly string[]> as fc.Arbitrary<
    [string, ...string[]]
  >
}

/** A message that an attached agent was given. */
interface Given {
  readonly address: string
  readonly envelope: A2AEnvelope
}

/**
 * Attaches drawn agents, each under its index, for the time of `run`, which gets their capabilities by address. Returns
 * the messages that they were given. Their runs complete at once.
 */
export async function withAgents(
  { world, nodes }: { readonly world: World; readonly nodes: readonly FakeNode[] },
  agents: readonly DrawnAgent[],
  run: (can: ReadonlyMap<string, readonly string[]>) => Promise<void>
): Promise<readonly Given[]> {
  const layers = nodes.map(({ core }) => createLayer(core))
  const can = new Map<string, readonly string[]>()
  const given: Given[] = []
  const closing: (() => Promise<void>)[] = []
  try {
    for (const [index, one] of agents.entries()) {
      const [id, capabilities] = [`agent${index}`, one.can.map((skill) => capability(skill))]
      const work = one.can.length === 0 ? {} : { run: () => 'done' }
      const { address, close } = await nodes[one.at].core.attach({ id, tier: 0, capabilities, ...work })
      const stop = layers[one.at].router.onReceive(id, (envelope) => given.push({ address, envelope }))
      can.set(address, one.can)
      closing.push(close, async () => stop())
    }
    await world.settle()
    await run(can)
  } finally {
    // Also after a failure: the smaller cases that follow it use the same nodes.
    for (const end of closing) await end()
    await world.settle()
  }
  return given
}
