import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { SandboxRules } from '../../../src/domain/routing/decide.js'
import type { Layer } from '../../../src/node/sdk/layer.js'
import type { TierRoutingConfig } from '../../../src/node/sdk/router.js'
import { failsWith } from '../../support/fails.js'
import { arbAgents, arbWanted, withAgents } from '../../support/arb-agents.js'
import { capability } from '../../support/fake-agents.js'
import { holds } from '../../support/holds.js'
import { isOpen } from '../../support/exchanges.js'
import { made, scene } from './router-scene.js'

const OPENING = ['request', 'notification', 'task-proposal', 'stream-start'] as const

test('Feature: a2a-mcp-protocols, Property 13: Direct message routing', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const [here] = places
  const sender = await listen(here, 'sender')
  const targets = [await listen(here, 'x'), await listen(here, 'y')]
  for (const place of places.slice(1)) targets.push(await listen(place, 'x'), await listen(place, 'y'))
  await holds(
    t,
    fc.asyncProperty(
      fc.constantFrom(...targets),
      fc.constantFrom(...OPENING),
      fc.string(),
      async (recipient, type, text) => {
        heard.clear()
        const envelope = made(here, { sender, recipient, type, payload: { text } })
        const result = await here.layer.router.send(envelope)
        await world.settle()
        const path = recipient.endsWith(here.node.id) ? 'local' : 'remote'
        assert.deepEqual(
          [result.delivered, result.path, result.targetAgentId, result.error],
          [true, path, recipient, undefined]
        )
        assert.ok(result.latencyMs >= 0)
        // Answers of the targets' own nodes to the sender are no deliveries of this message.
        heard.delete(sender)
        assert.deepEqual([...heard.keys()], [recipient], 'exactly that agent')
        const [got, ...more] = heard.get(recipient) ?? []
        assert.equal(more.length, 0)
        assert.deepEqual(
          [got?.id, got?.type, got?.timestamp, got?.payload],
          [envelope.id, type, envelope.timestamp, { text }]
        )
      }
    ),
    100
  )
})

test('Feature: a2a-mcp-protocols, Property 14: Broadcast delivery', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const sender = await listen(places[0], 'sender')
  const present = new Map<string, string>()
  const arbWho = fc.uniqueArray(fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 3 })), {
    selector: ([node, id]) => `${node}/${id}`,
    maxLength: 6
  })
  await holds(
    t,
    fc.asyncProperty(arbWho, fc.string(), async (who, text) => {
      const closing: (() => Promise<void>)[] = []
      present.clear()
      heard.clear()
      for (const [index, number] of who) {
        const { node, layer } = places[index]
        const agent = await node.core.attach({ id: `agent${number}` })
        const stop = layer.router.onReceive(`agent${number}`, ({ payload }) =>
          present.set(agent.address, (payload as { text: string }).text)
        )
        closing.push(async () => {
          stop()
          await agent.close()
        })
      }
      await world.settle()
      const envelope = made(places[0], { sender, recipient: '*', type: 'notification', payload: { text } })
      const result = await places[0].layer.router.send(envelope)
      await world.settle()
      const wanted = who.map(([index, number]) => `agent${number}@${places[index].node.id}`)
      assert.deepEqual([...present.keys()].sort(), [...wanted].sort(), 'all of them')
      assert.ok([...present.values()].every((one) => one === text))
      assert.deepEqual([result.path, result.targetAgentId, result.delivered], ['broadcast', '*', true])
      const told = (result.targets ?? []).filter((one) => one.delivered).map((one) => one.targetAgentId)
      for (const address of wanted) assert.ok(told.includes(address))
      assert.equal(heard.has(sender), false, 'the sender is not one of them')
      for (const close of closing) await close()
      await world.settle()
    }),
    100
  )
})

test('Feature: a2a-mcp-protocols, Property 15: Capability-based routing', async (t) => {
  const { world, places, listen } = await scene(t)
  const nodes = places.map(({ node }) => node)
  const sender = await listen(places[0], 'sender')
  const arbCase = arbAgents.chain((agents) => fc.record({ agents: fc.constant(agents), wanted: arbWanted(agents, 1) }))
  const property = fc.asyncProperty(
    arbCase,
    fc.constantFrom(...OPENING),
    async ({ agents, wanted: [wanted] }, type) => {
      const metadata = { tier: 0 as const, routingHint: 'capability' as const }
      const envelope = made(places[0], { sender, recipient: wanted, type, payload: 1, metadata })
      let capable: readonly string[] = []
      let result: Awaited<ReturnType<Layer['router']['send']>> | null = null
      const given = await withAgents({ world, nodes }, agents, async (can) => {
        capable = [...can].flatMap(([address, one]) => (one.includes(wanted) ? [address] : []))
        result = await places[0].layer.router.send(envelope)
        await world.settle()
      })
      assert.ok(result)
      const { delivered, targetAgentId, code, error } = result as Awaited<ReturnType<Layer['router']['send']>>
      const reached = given.map(({ address }) => address)
      if (capable.length > 0) {
        assert.deepEqual([delivered, reached], [true, [targetAgentId]])
        assert.ok(capable.includes(targetAgentId), 'its card has the capability')
      } else {
        assert.deepEqual([delivered, code, reached], [false, 'CAPABILITY_NOT_FOUND', []])
        assert.ok(error?.includes(wanted))
      }
    }
  )
  await holds(t, property, 100)
})

test('Feature: a2a-mcp-protocols, Property 29: Sandbox routing enforcement between nodes', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const [here, there] = places
  const boxes = ['ci', 'lab', null]
  const senders: string[] = []
  const targets: string[] = []
  for (const sandboxId of boxes) {
    senders.push(await listen(here, `from-${sandboxId ?? 'none'}`, { sandboxId }))
    for (const place of [here, there]) targets.push(await listen(place, `to-${sandboxId ?? 'none'}`, { sandboxId }))
  }
  const arbAllowed = fc.subarray([...targets, 'to-ci', 'to-lab', 'to-none'], { maxLength: 3 })
  await holds(
    t,
    fc.asyncProperty(
      fc.nat({ max: 2 }),
      fc.nat({ max: 5 }),
      fc.boolean(),
      arbAllowed,
      async (from, to, enforced, crossSandboxAllowList) => {
        for (const place of places) place.layer.router.setSandboxConfig({ enforced, crossSandboxAllowList })
        heard.clear()
        const before = here.node.audit.events.length
        const [sender, recipient] = [senders[from] ?? '', targets[to] ?? '']
        const result = await here.layer.router.send(made(here, { sender, recipient, type: 'notification', payload: 1 }))
        await world.settle()
        const isListed = crossSandboxAllowList.some((one) => one === recipient || one === recipient.split('@')[0])
        const mayPass = !enforced || boxes[from] === null || boxes[from] === boxes[Math.floor(to / 2)] || isListed
        assert.equal(result.code ?? 'delivered', mayPass ? 'delivered' : 'SANDBOX_VIOLATION')
        assert.equal(heard.has(recipient), mayPass)
        const told = here.node.audit.events.slice(before).filter((one) => one.kind === 'refusal')
        assert.deepEqual(
          told.map((one) => [one.code, one.sender, one.recipient]),
          mayPass ? [] : [['SANDBOX_VIOLATION', sender, recipient]],
          'a refusal is a security event'
        )
      }
    ),
    200
  )
})

test('an agent without a known card is looked up at the members; one without a node is AGENT_NOT_FOUND by name', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender')
  const remote = await listen(there, 'late')
  here.node.core.registry.unregister(remote)
  const sending = here.layer.router.send(made(here, { sender, recipient: 'late', type: 'notification', payload: 1 }))
  await world.settle()
  t.alike([(await sending).delivered, (await sending).targetAgentId], [true, remote])
  t.is(heard.get(remote)?.length, 1)
  const lost = here.layer.router.send(made(here, { sender, recipient: 'nobody', type: 'notification', payload: 1 }))
  await world.pass(1000)
  t.is((await lost).code, 'AGENT_NOT_FOUND')
  t.ok((await lost).error?.includes('nobody'))
})

test('refusals are results: of a sender, of a recipient and of a malformed envelope', async (t) => {
  const { places, listen } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender', { tier: 3 })
  const target = await listen(there, 'target', { tier: 1 })
  const { router } = here.layer
  const base = { sender, recipient: target, type: 'notification' as const, payload: 1 }
  t.is((await router.send(made(here, base))).code, 'ESCALATION_REQUIRED')
  t.is((await router.send(made(here, { ...base, metadata: { tier: 3, justification: 'asked to' } }))).delivered, true)
  t.is((await router.send(made(here, { ...base, sender: target, recipient: sender }))).code, 'FORBIDDEN')
  t.is(
    (await router.send({ ...made(here, base), schemaVersion: 2 })).error,
    'SCHEMA_VERSION_MISMATCH: schemaVersion: expected 1, got 2'
  )
  t.is((await router.send(made(here, { ...base, sender: 'ghost' }))).code, 'AGENT_NOT_FOUND')
})

test('an envelope is sent as it was given, for any later changes by its caller', async (t) => {
  const { world, places, listen, heard } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender')
  const target = await listen(there, 'target')
  for (const change of [{ type: 'sing' }, { schemaVersion: 7 }, { payload: 2, sender: 'ghost' }, { timestamp: -1 }]) {
    const envelope = made(here, { sender, recipient: 'target', type: 'notification', payload: 1 })
    const sending = here.layer.router.send(envelope)
    Object.assign(envelope, change)
    t.is((await sending).delivered, true, JSON.stringify(change))
  }
  await world.settle()
  t.alike(
    heard.get(target)?.map(({ type, payload }) => [type, payload]),
    Array.from({ length: 4 }, () => ['notification', 1])
  )
  const throwing = Object.defineProperty(
    made(here, { sender, recipient: target, type: 'notification', payload: 1 }),
    'payload',
    {
      enumerable: true,
      get: () => {
        throw new Error('no')
      }
    }
  )
  t.is((await here.layer.router.send(throwing)).delivered, false, 'it never rejects')
})

test('other tier and sandbox rules are those of this node from then on', async (t) => {
  const { places, listen } = await scene(t)
  const [here] = places
  const sender = await listen(here, 'sender', { tier: 1 })
  const weak = await listen(here, 'weak', { tier: 3 })
  const { router } = here.layer
  const send = async (): Promise<string> => {
    const result = await router.send(made(here, { sender, recipient: weak, type: 'notification', payload: 1 }))
    return result.code ?? 'delivered'
  }
  t.is(await send(), 'TIER_VIOLATION')
  router.setTierConfig({ rules: [{ sourceTier: 1, allowedTargetTiers: [3], requiresEscalationJustification: false }] })
  t.is(await send(), 'delivered')
  await here.node.core.attach({ id: 'boxed', tier: 1, sandboxId: 'ci' })
  const boxed = { sender: 'boxed', recipient: weak, type: 'notification' as const, payload: 1 }
  t.is((await router.send(made(here, boxed))).code, 'SANDBOX_VIOLATION')
  router.setSandboxConfig({ enforced: true, crossSandboxAllowList: ['weak'] })
  t.is((await router.send(made(here, boxed))).delivered, true)
})

test('an invalid envelope or rule is refused with a code, and changes nothing', async (t) => {
  const { places, listen } = await scene(t)
  const [here] = places
  const sender = await listen(here, 'sender', { tier: 1 })
  const { router } = here.layer
  const sent = made(here, { sender, recipient: sender, type: 'notification', payload: 1 })
  const broken: unknown[] = [
    null,
    1,
    'text',
    [],
    {},
    { ...sent, recipient: 7 },
    { ...sent, metadata: null },
    { ...sent, type: 'nope' }
  ]
  for (const envelope of broken) t.is((await router.send(envelope as A2AEnvelope)).code, 'INVALID_ENVELOPE')
  const before = JSON.stringify(here.node.core.accessControl.rules())
  const rule = { sourceTier: 0, allowedTargetTiers: [0], requiresEscalationJustification: false }
  for (const config of [
    null,
    {},
    { rules: 'x' },
    { rules: [null] },
    { rules: [{ ...rule, sourceTier: 4 }] },
    { rules: [rule, rule] }
  ])
    await failsWith(t, 'USAGE', () => router.setTierConfig(config as TierRoutingConfig))
  for (const config of [null, { enforced: 'x' }, { enforced: true }, { enforced: 'x', crossSandboxAllowList: [] }])
    await failsWith(t, 'USAGE', () => router.setSandboxConfig(config as SandboxRules))
  t.is(JSON.stringify(here.node.core.accessControl.rules()), before)
})

test('a stream goes to its listener until it ends, and the thread has all of it', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender')
  const target = await listen(there, 'target')
  const deaf = (await there.node.core.attach({ id: 'deaf' })).address
  await world.settle()
  const start = made(here, { sender, recipient: target, type: 'stream-start', payload: null })
  const part = (type: 'stream-data' | 'stream-end'): A2AEnvelope =>
    made(here, { sender, recipient: target, type, payload: 1, correlationId: start.id })
  for (const one of [start, part('stream-data'), part('stream-data'), part('stream-end')])
    t.is((await here.layer.router.send(one)).delivered, true)
  await world.settle()
  const types = ['stream-start', 'stream-data', 'stream-data', 'stream-end']
  t.alike(
    heard.get(target)?.map((one) => one.type),
    types
  )
  for (const { layer } of [here, there])
    t.alike(
      layer.thread(start.id).map((one) => one.type),
      types
    )
  t.absent(
    isOpen(there.node, { peer: here.node.id, correlationId: start.id, own: 'target', other: 'sender' }),
    'it is over at its target'
  )
  await here.layer.router.send(made(here, { sender, recipient: deaf, type: 'stream-start', payload: null }))
  await world.settle()
  t.is(heard.get(sender)?.at(-1)?.type, 'error')
})

test('a stream that is never ended is over after ten minutes', async (t) => {
  const { world, places, listen } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender')
  const target = await listen(there, 'target')
  await world.settle()
  const start = made(here, { sender, recipient: target, type: 'stream-start', payload: null })
  await here.layer.router.send(start)
  await world.settle()
  const stream = { peer: here.node.id, correlationId: start.id, own: 'target', other: 'sender' }
  t.ok(isOpen(there.node, stream))
  await world.pass(600_000, 60_000)
  t.absent(isOpen(there.node, stream))
})

test('a listener that stops or throws disturbs nobody', async (t) => {
  const { world, places, heard, listen } = await scene(t)
  const [here] = places
  const sender = await listen(here, 'sender')
  const target = await listen(here, 'target')
  here.layer.router.onReceive('target', () => {
    throw new Error('oops')
  })
  const stop = here.layer.router.onReceive('target', () => t.fail('it has stopped'))
  stop()
  t.is(
    (await here.layer.router.send(made(here, { sender, recipient: target, type: 'notification', payload: 1 })))
      .delivered,
    true
  )
  await world.settle()
  t.is(heard.get(target)?.length, 1)
  t.ok(here.node.lines.some((line) => line.includes('a listener did not take its message')))
})

test('a broadcast of a program leaves out work with side effects too, by the capability it names, unless it is for all', async (t) => {
  const { world, places, listen } = await scene(t)
  const sender = await listen(places[0], 'sender')
  const run = (): null => null
  const capabilities = [capability('look', { sideEffect: 'read' }), capability('change', { sideEffect: 'write' })]
  const { address } = await places[1].node.core.attach({ id: 'worker', tier: 0, capabilities, run })
  await world.settle()
  const codeFor = async (type: A2AEnvelope['type'], payload: unknown, all = false): Promise<string> => {
    const envelope = made(places[0], { sender, recipient: '*', type, payload })
    const { targets = [] } = await places[0].layer.router.send(envelope, { all })
    await world.settle()
    const { delivered, code = '' } = targets.find(({ targetAgentId }) => targetAgentId === address) ?? {
      delivered: false
    }
    return delivered ? 'delivered' : code
  }
  const request = (name: string): object => ({ requestId: `r-${name}`, capability: name, input: {}, description: '' })
  t.is(await codeFor('notification', 1), 'delivered', 'its default capability reads')
  t.is(await codeFor('request', request('look')), 'delivered')
  t.is(await codeFor('request', request('change')), 'POLICY_DENIED')
  t.is(await codeFor('request', request('unknown')), 'POLICY_DENIED', 'an unknown capability counts as exec')
  t.is(await codeFor('request', request('change'), true), 'delivered')
})
