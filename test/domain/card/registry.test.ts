import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import type { AgentCard } from '../../../src/domain/card/card.js'
import { agentCardOf, AgentRegistry, isVisibleTo, type RegisteredCard } from '../../../src/domain/card/registry.js'
import { arbAgentCard } from '../../../src/testing.js'
import { actor, cardBody } from '../../support/membership.js'

const SELF = actor('self').id
const NODES = [actor('ann').id, actor('bob').id, actor('cat').id]
const node = (index: number): string => NODES[index % NODES.length] ?? SELF

const asJson = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown
const codeOf = (run: () => unknown): string => {
  try {
    run()
    return 'no error'
  } catch (error) {
    return error instanceof NodeError ? error.code : 'another error'
  }
}

test('Feature: a2a-mcp-protocols, Property 1: Agent Card registration and retrieval', (t: Assert) => {
  fc.assert(
    fc.property(fc.uniqueArray(arbAgentCard(), { selector: (card) => card.id, maxLength: 6 }), (cards) => {
      const registry = new AgentRegistry()
      for (const card of cards) registry.register(card, SELF)
      for (const card of cards) {
        const found = registry.getById(card.id)
        t.is(found.length, 1)
        t.alike(agentCardOf(found[0]), { ...card, origin: 'local' })
        t.is(registry.getByAddress(`${card.id}@${SELF}`), found[0])
        for (const { id } of card.capabilities) t.ok(registry.findByCapability(id).includes(found[0]))
        t.ok(registry.findByTier(card.tier).includes(found[0]))
      }
      t.is(registry.listAll().length, cards.length)
    }),
    { numRuns: 100 }
  )
})

test('Feature: a2a-mcp-protocols, Property 2: Agent Card validation rejects incomplete cards', (t: Assert) => {
  const required = ['id', 'name', 'version', 'tier', 'capabilities'] as const
  fc.assert(
    fc.property(arbAgentCard(), fc.subarray([...required], { minLength: 1 }), (card, missing) => {
      const registry = new AgentRegistry()
      const incomplete = Object.fromEntries(Object.entries(card).filter(([key]) => !missing.includes(key as 'id')))
      try {
        registry.register(incomplete as unknown as AgentCard, SELF)
        t.fail('it was taken')
      } catch (error) {
        t.is(error instanceof NodeError && error.code, 'INVALID_CARD')
        for (const field of missing) t.ok(error instanceof Error && error.message.includes(`${field}: missing`), field)
      }
      t.is(registry.listAll().length, 0)
    }),
    { numRuns: 100 }
  )
})

test('Feature: a2a-mcp-protocols, Property 3: Duplicate Agent Card updates revision', (t: Assert) => {
  fc.assert(
    fc.property(arbAgentCard(), arbAgentCard(), (first, other) => {
      const registry = new AgentRegistry()
      registry.register(first, SELF)
      const second = { ...other, id: first.id }
      registry.register(second, SELF)
      t.is(registry.getById(first.id).length, 1)
      t.alike(agentCardOf(registry.getById(first.id)[0]), { ...second, origin: 'local', revision: first.revision + 1 })
      t.is(registry.listAll().length, 1)
    }),
    { numRuns: 100 }
  )
})

test('Feature: a2a-mcp-protocols, Property 4: Agent Card serialization round trip', (t: Assert) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(arbAgentCard(), fc.nat(2)), { maxLength: 6 }), (cards) => {
      const registry = new AgentRegistry()
      for (const [card, where] of cards) {
        if (card.origin === 'local') registry.register(card, SELF)
        else registry.merge(card, node(where), card.lastSeenAt)
      }
      const copy = AgentRegistry.deserialize(registry.serialize())
      t.alike(asJson(copy.listAll()), asJson(registry.listAll()))
      t.is(copy.serialize(), registry.serialize())
    }),
    { numRuns: 100 }
  )
})

test('Feature: a2a-mcp-protocols, Property 5: Remote Agent Card merge preserves origin', (t: Assert) => {
  fc.assert(
    fc.property(arbAgentCard(), fc.nat(2_000_000_000), (card, at) => {
      const registry = new AgentRegistry()
      t.is(registry.merge(card, node(0), at), true)
      const stored = registry.getByAddress(`${card.id}@${node(0)}`) as RegisteredCard
      t.alike(agentCardOf(stored), { ...card, origin: 'remote', lastSeenAt: at })
      t.alike(registry.getRemoteCards(), [stored])
      t.alike(registry.getLocalCards(), [])
    }),
    { numRuns: 100 }
  )
})

test('Feature: a2a-mcp-protocols, Property 30: Sandbox discovery filtering', (t: Assert) => {
  const arbAllow = fc.array(fc.nat(9), { maxLength: 3 })
  fc.assert(
    fc.property(
      fc.array(arbAgentCard(), { maxLength: 10 }),
      fc.option(fc.constantFrom('ci', 'lab', 'home')),
      arbAllow,
      (cards, sandboxId, allow) => {
        const registry = new AgentRegistry()
        cards.forEach((card, i) => registry.merge(card, node(i), 1))
        const all = registry.listAll()
        const allowed = allow
          .map((i, place) => (place % 2 === 0 ? all[i]?.id : all[i]?.address))
          .filter((one) => one !== undefined)
        const seen = registry.visibleTo(sandboxId, allowed)
        for (const card of all) {
          const may =
            sandboxId === null ||
            card.sandboxId === sandboxId ||
            allowed.includes(card.id) ||
            allowed.includes(card.address)
          t.is(seen.includes(card), may)
          t.is(isVisibleTo(card, sandboxId, allowed), may)
        }
        if (sandboxId !== null && allowed.length === 0) t.ok(seen.every((card) => card.sandboxId === sandboxId))
      }
    ),
    { numRuns: 100 }
  )
})

test('the same agent id on two nodes is two agents', (t: Assert) => {
  const registry = new AgentRegistry()
  registry.register(cardBody('host'), SELF)
  registry.merge(cardBody('host', { tier: 2 }), node(0), 1)
  t.alike(
    registry.getById('host').map((card) => card.nodeId),
    [SELF, node(0)]
  )
  t.is(registry.unregister(`host@${SELF}`), true)
  t.is(registry.unregister(`host@${SELF}`), false)
  t.alike(
    registry.getById('host').map((card) => card.nodeId),
    [node(0)]
  )
})

test('an older revision is ignored, the same one only counts as seen', (t: Assert) => {
  const registry = new AgentRegistry()
  const seen = () => registry.getByAddress(`host@${node(0)}`)
  registry.merge(cardBody('host', { revision: 5, name: 'five' }), node(0), 100)
  t.is(registry.merge(cardBody('host', { revision: 4, name: 'four' }), node(0), 200), false)
  t.alike([seen()?.name, seen()?.lastSeenAt], ['five', 100])
  t.is(registry.merge(cardBody('host', { revision: 5, name: 'other' }), node(0), 300), false)
  t.alike([seen()?.name, seen()?.lastSeenAt], ['five', 300])
  t.is(registry.merge(cardBody('host', { revision: 6, name: 'six' }), node(0), 250), true)
  t.alike([seen()?.name, seen()?.revision], ['six', 6])
})

test('a card of this node is not overwritten from afar', (t: Assert) => {
  const registry = new AgentRegistry()
  registry.register(cardBody('host'), SELF)
  t.is(registry.merge(cardBody('host', { revision: 99 }), SELF, 1), false)
  t.is(registry.getByAddress(`host@${SELF}`)?.revision, 1)
  registry.put(cardBody('host', { revision: 7 }), SELF)
  t.is(registry.getByAddress(`host@${SELF}`)?.revision, 7, 'a caller that keeps revisions puts them itself')
})

test('every look-up follows changes and removals', (t: Assert) => {
  const capability = (id: string) => ({ id, name: id, description: '', inputSchema: {}, outputSchema: {} })
  const arbStep = fc.record({
    agent: fc.constantFrom('a', 'b', 'c'),
    where: fc.nat(2),
    revision: fc.nat(9),
    tier: fc.constantFrom(0 as const, 1 as const, 2 as const),
    can: fc.subarray(['x', 'y', 'z']),
    op: fc.constantFrom('merge', 'merge', 'merge', 'unregister', 'remove-node')
  })
  fc.assert(
    fc.property(fc.array(arbStep, { maxLength: 40 }), (steps) => {
      const registry = new AgentRegistry()
      const model = new Map<string, { revision: number; tier: number; can: string[]; nodeId: string }>()
      for (const { agent, where, revision, tier, can, op } of steps) {
        const address = `${agent}@${node(where)}`
        if (op === 'merge') {
          registry.merge(cardBody(agent, { revision, tier, capabilities: can.map(capability) }), node(where), 1)
          if ((model.get(address)?.revision ?? -1) < revision)
            model.set(address, { revision, tier, can, nodeId: node(where) })
        } else if (op === 'unregister') {
          t.is(registry.unregister(address), model.delete(address))
        } else {
          t.is(registry.removeNode(node(where)), [...model.values()].filter((one) => one.nodeId === node(where)).length)
          for (const [key, one] of model) if (one.nodeId === node(where)) model.delete(key)
        }
        const expect = (holds: (one: { tier: number; can: string[]; nodeId: string }, key: string) => boolean) =>
          [...model]
            .filter(([key, one]) => holds(one, key))
            .map(([key]) => key)
            .sort()
        const got = (cards: readonly RegisteredCard[]) => cards.map((card) => card.address).sort()
        t.alike(
          got(registry.listAll()),
          expect(() => true)
        )
        for (const id of ['x', 'y', 'z'])
          t.alike(
            got(registry.findByCapability(id)),
            expect((one) => one.can.includes(id))
          )
        for (const level of [0, 1, 2] as const)
          t.alike(
            got(registry.findByTier(level)),
            expect((one) => one.tier === level)
          )
        for (const id of ['a', 'b', 'c'])
          t.alike(
            got(registry.getById(id)),
            expect((_, key) => key.startsWith(`${id}@`))
          )
        t.alike(
          got(registry.ofNode(node(0))),
          expect((one) => one.nodeId === node(0))
        )
        t.is(registry.getRemoteCards().length, model.size)
      }
    }),
    { numRuns: 100 }
  )
})

test('a look-up by capability does not walk the cards: the same list comes back until a card of it changes', (t: Assert) => {
  const registry = new AgentRegistry()
  const capabilities = [{ id: 'x', name: 'x', description: '', inputSchema: {}, outputSchema: {} }]
  for (let i = 0; i < 500; i++) registry.merge(cardBody(`agent${i}`, { capabilities }), node(i), 1)
  const list = registry.findByCapability('x')
  t.is(list.length, 500)
  registry.merge(cardBody('other'), node(0), 1)
  t.is(registry.findByCapability('x'), list)
  registry.merge(cardBody('agent7', { revision: 2, capabilities }), node(7), 1)
  t.not(registry.findByCapability('x'), list)
  t.is(registry.findByCapability('x')[7]?.revision, 2, 'in its old place')
  t.alike(registry.findByCapability('nothing'), [])
})

test('stored text of another version or form is an error with its code', (t: Assert) => {
  t.is(
    codeOf(() => AgentRegistry.deserialize('{"schema":2,"cards":[]}')),
    'SCHEMA_VERSION_MISMATCH'
  )
  const broken = [
    '',
    '5',
    '{}x',
    '{"schema":1}',
    '{"schema":1,"cards":[5]}',
    `{"schema":1,"cards":[{"nodeId":"${SELF}","card":{}}]}`,
    '{"schema":1,"cards":[{"nodeId":"me","card":{}}]}'
  ]
  const { origin: _, ...homeless } = { ...cardBody('host'), origin: 'remote', lastSeenAt: 1 }
  broken.push(JSON.stringify({ schema: 1, cards: [{ nodeId: SELF, card: homeless }] }))
  broken.push(JSON.stringify({ schema: 1, cards: [{ nodeId: SELF, card: { ...cardBody('host'), origin: 'remote' } }] }))
  for (const text of broken)
    t.is(
      codeOf(() => AgentRegistry.deserialize(text)),
      'INVALID_CARD',
      text
    )
  t.is(AgentRegistry.deserialize('{"schema":1,"cards":[]}').listAll().length, 0)
})

test('stored cards of another schema version are refused with the expected and the actual one', (t: Assert) => {
  const reasonOf = (json: string): string => {
    try {
      AgentRegistry.deserialize(json)
      return 'taken'
    } catch (error) {
      return error instanceof NodeError ? `${error.code} ${error.message}` : 'another error'
    }
  }
  t.is(
    reasonOf('{"schema":7,"cards":[]}'),
    'SCHEMA_VERSION_MISMATCH the stored cards have another schema: expected 1, got 7'
  )
  t.is(
    reasonOf('{"schema":"x","cards":[]}'),
    'SCHEMA_VERSION_MISMATCH the stored cards have another schema: expected 1, got none'
  )
  t.is(reasonOf('{"schema":1,"cards":[]}'), 'taken')
})
