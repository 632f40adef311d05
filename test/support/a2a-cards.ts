import fc, { type Arbitrary } from 'fast-check'
import { CardSigner, type KeySet } from '../../src/adapters/a2a/cards/card-signature.js'
import type { SignedCard } from '../../src/domain/membership/types.js'
import { seal } from '../../src/domain/membership/signing.js'
import { cardBodyOf } from '../../src/domain/card/schema.js'
import { tierText } from '../../src/domain/routing/tier.js'
import type { AgentDetail } from '../../src/ports/node-api.js'
import { arbAgentCard } from '../../src/testing.js'
import { actor } from './membership.js'

/** Where the cards of tests say that they are. */
export const BASE = 'http://127.0.0.1:7420'

/** An agent as the node's API tells of it, and the card that its own node signed when that is another one. */
export interface ToldAgent {
  readonly detail: AgentDetail
  readonly original: SignedCard | null
}

/** A signer with the key of an actor. */
export function signerOf(name: string): CardSigner {
  const { id, sign } = actor(name)
  return new CardSigner({ sign, nodeId: id, keysUrl: `${BASE}/.well-known/jwks.json` })
}

/** The one key of a set, in the form that libraries take. */
export function keyOf({ keys: [key] }: KeySet): Record<string, string> {
  return { ...key }
}

/** Any agent, of any node. */
export function arbToldAgent(): Arbitrary<ToldAgent> {
  const nodeNames = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((name) => name.trim() !== '')
  return fc
    .record({ card: arbAgentCard(), nodeName: nodeNames, who: fc.constantFrom('owner', 'b', 'c') })
    .map(({ card, nodeName, who }) => {
      const node = actor(who)
      const { id, name, version, description, tier, sandboxId, labels, capabilities, revision, origin, provider } = card
      const detail: AgentDetail = {
        id,
        address: `${id}@${nodeName}`,
        node: { id: node.id, name: nodeName },
        tier: tierText(tier),
        origin,
        sandboxId: sandboxId ?? null,
        labels: labels ?? [],
        revision,
        ...(provider === undefined ? {} : { provider }),
        status: 'ready',
        name,
        version,
        description,
        capabilities,
        prompts: [],
        source: null
      }
      return { detail, original: origin === 'local' ? null : seal('card', cardBodyOf(card), node) }
    })
}
