import type { Assert } from 'brittle'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { EnvelopeParts } from '../../../src/domain/envelope/factory.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { createLayer, type Layer } from '../../../src/node/sdk/layer.js'
import { capability } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'

/** A member and its layer. */
export interface Place {
  readonly node: FakeNode
  readonly layer: Layer
}

interface ListenOptions {
  readonly tier?: Tier
  readonly can?: readonly string[]
  readonly sandboxId?: string | null
}

interface Scene {
  readonly world: World
  readonly places: readonly [Place, Place, Place]
  /** Every message that an agent of a test was given, by its address. */
  readonly heard: Map<string, A2AEnvelope[]>
  /** Attaches an agent that listens through its layer; its address. */
  listen(place: Place, id: string, options?: ListenOptions): Promise<string>
}

/** Three members at L0 with a link each, so that the rules let everybody open to everybody. */
export async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const nodes = [
    await world.owner(),
    await world.member('b', { terms: { tier: 0 } }),
    await world.member('c', { terms: { tier: 0 } })
  ]
  await world.link(...nodes)
  const [a, b, c] = nodes.map((node) => ({ node, layer: createLayer(node.core) }))
  const heard = new Map<string, A2AEnvelope[]>()
  return {
    world,
    places: [a, b, c],
    heard,
    listen: async ({ node, layer }, id, { tier = 0, can = [], sandboxId = null } = {}) => {
      const capabilities = can.map((one) => capability(one))
      const { address } = await node.core.attach({
        id,
        tier,
        capabilities,
        ...(sandboxId === null ? {} : { sandboxId }),
        ...(can.length === 0 ? {} : { run: () => null })
      })
      layer.router.onReceive(id, (envelope) => heard.set(address, [...(heard.get(address) ?? []), envelope]))
      await world.settle()
      return address
    }
  }
}

/** An envelope of a place, made by its node's factory. */
export function made({ layer }: Place, parts: EnvelopeParts): A2AEnvelope {
  return layer.envelopes.create(parts)
}
