import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import type { GatewayTask } from '../../../src/domain/gateway/task.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { ownerOf, refuseWeaker } from '../../../src/node/gateway/caller.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { holds } from '../../support/holds.js'

const CAPABILITIES = ['a', 'b', 'c']
const tier = fc.constantFrom<Tier>(0, 1, 2, 3)

test('a token goes on with a task exactly when it could have begun it with that power', async (t) => {
  await holds(
    t,
    fc.property(
      tier,
      fc.option(fc.subarray(CAPABILITIES)),
      tier,
      fc.constantFrom(...CAPABILITIES),
      (own, limit, maxTier, capability) => {
        const by: Principal = {
          kind: 'client',
          name: 'c',
          tier: own,
          sandboxId: null,
          scopes: ['send'],
          ...(limit === null ? {} : { capabilities: limit })
        }
        const task = { by: { maxTier, sandboxId: null }, capability } as GatewayTask
        const may = own <= maxTier && (limit === null || limit.includes(capability))
        try {
          refuseWeaker(by, task)
          return may
        } catch (error) {
          return !may && error instanceof NodeError && error.code === 'FORBIDDEN'
        }
      }
    ),
    1000
  )
})

test('tokens of one client and subject have one owner, and nobody else has it', async (t) => {
  const kind = fc.constantFrom<Principal['kind']>('token', 'client', 'peer', 'operator')
  const id = fc.stringMatching(/^[a-z0-9_]{1,12}$/)
  await holds(
    t,
    fc.property(kind, id, kind, id, fc.string(), (kindA, idA, kindB, idB, name) => {
      const owner = (its: Principal['kind'], own: string): string =>
        ownerOf({ kind: its, name, id: own, tier: 3, sandboxId: null, scopes: [] })
      return (owner(kindA, idA) === owner(kindB, idB)) === (kindA === kindB && idA === idB)
    })
  )
})
