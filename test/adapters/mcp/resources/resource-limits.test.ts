import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { adminTools } from '../../../../src/adapters/mcp/tools/admin-tools.js'
import { HEALTH_OPTIONS, healthTool, type HealthResponse } from '../../../../src/adapters/mcp/tools/health-tool.js'
import { startProcessMeter } from '../../../../src/adapters/mcp/server/process-meter.js'
import { ResourceManager } from '../../../../src/adapters/mcp/resources/resource-limits.js'
import type { ReleaseSlot } from '../../../../src/adapters/mcp/resources/slot-queue.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { holds } from '../../../support/holds.js'
import { call, McpScene, payloadOf } from '../../../support/mcp.js'

function manager(max = 10, meter = { memoryBytes: () => 1, loopDelayMs: () => 0 }): ResourceManager {
  return new ResourceManager({ maxConcurrentExecutions: max, maxPayloadBytes: 100 }, meter)
}

test('there are never more slots than the limit, waiters get them in order, and a second release does nothing', async (t: Assert) => {
  const arbSteps = fc.array(fc.tuple(fc.constantFrom('try', 'wait', 'release', 'again'), fc.nat()), { maxLength: 40 })
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 4 }), arbSteps, async (max, steps) => {
    const limits = manager(max)
    const held: ReleaseSlot[] = []
    const spent: ReleaseSlot[] = []
    const granted: number[] = []
    let asked = 0
    let waiting = 0
    for (const [step, pick] of steps) {
      if (step === 'try') {
        const release = limits.tryAcquireSlot()
        if ((release === null) !== (held.length === max)) return false
        if (release !== null) held.push(release)
      } else if (step === 'wait') {
        const number = asked++
        waiting++
        void limits.acquireSlot().then((release) => {
          waiting--
          granted.push(number)
          if (release !== null) held.push(release)
        })
      } else if (step === 'release' && held.length > 0) {
        const [release] = held.splice(pick % held.length, 1)
        release()
        spent.push(release)
      } else if (spent.length > 0) spent[pick % spent.length]()
      await Promise.resolve()
      await Promise.resolve()
      if (limits.getTelemetry().concurrentExecutions !== held.length || held.length > max) return false
      if (waiting > 0 && held.length < max) return false
    }
    return granted.every((number, i) => number === i)
  })
  await holds(t, property, 300)
})

test('the size of arguments is that of their JSON in UTF-8', async (t: Assert) => {
  const limits = manager()
  const property = fc.property(fc.jsonValue(), (value) => {
    return limits.validatePayloadSize(value).valid === Buffer.byteLength(JSON.stringify(value)) <= 100
  })
  await holds(t, property, 300)
  for (const value of [1n, undefined, () => 1]) t.absent(limits.validatePayloadSize(value).valid)
})

test('health follows the thresholds of the specification', (t: Assert) => {
  const rows: readonly (readonly [taken: number, delay: number, exhausted: number, status: string])[] = [
    [0, 0, 0, 'healthy'],
    [8, 100, 2, 'healthy'],
    [9, 0, 0, 'degraded'],
    [0, 100.1, 0, 'degraded'],
    [0, 500, 0, 'degraded'],
    [10, 0, 0, 'unhealthy'],
    [0, 500.1, 0, 'unhealthy'],
    [0, 0, 3, 'unhealthy'],
    [9, 200, 4, 'unhealthy']
  ]
  for (const [taken, delay, exhausted, status] of rows) {
    const limits = manager(10, { memoryBytes: () => 1, loopDelayMs: () => delay })
    for (let i = 0; i < taken; i++) limits.tryAcquireSlot()
    for (let i = 0; i < exhausted; i++) limits.answered('RESOURCE_EXHAUSTED')
    t.is(limits.health(), status, `${taken} slots, ${delay} ms, ${exhausted} refused`)
    t.is(limits.isApproachingLimits(), taken > 8 || delay > 100)
  }
})

test('calls that are refused for want of resources count until one ends otherwise; protocol errors do not', async (t: Assert) => {
  const scene = new McpScene({ maxConcurrentExecutions: 1, maxWaitingExecutions: 0 })
  const ends: (() => void)[] = []
  scene.tool('hold', () => new Promise((resolve) => ends.push(() => resolve(null))))
  const client = scene.connect(t)
  await client.open()
  client.write(call('held', 'hold'))
  for (let i = 1; i <= 3; i++) {
    await client.ask(call(i, 'hold'))
    t.is(scene.limits.consecutiveExhausted, i)
    await client.ask(call(i, 7))
    t.is(scene.limits.consecutiveExhausted, i, 'a request that is wrong in itself')
  }
  t.is(scene.limits.health(), 'unhealthy')
  await client.ask(call(4, 'no.such'))
  t.is(scene.limits.consecutiveExhausted, 0, 'another error ends the row')
  await client.ask(call(5, 'hold'))
  ends[0]()
  await client.heard(9)
  t.is(scene.limits.consecutiveExhausted, 0, 'success ends it')
})

test('the health tool gives name, settings, telemetry and status', async (t: Assert) => {
  const scene = new McpScene()
  const settings = {
    defaultTimeoutMs: 30_000,
    maxConcurrentExecutions: 10,
    maxPayloadBytes: 1_048_576,
    maxStateBytes: 262_144
  }
  const { definition, handler } = healthTool({ name: 'node', version: '1.0.0', limits: scene.limits, settings })
  scene.registry.register(definition, handler, HEALTH_OPTIONS)
  const client = scene.connect(t)
  await client.open()
  scene.meter.delay = 150
  const health = payloadOf(await client.ask(call(1, 'health'))) as unknown as HealthResponse
  t.alike(health, {
    server: { name: 'node', version: '1.0.0' },
    config: { toolTimeoutMs: 30_000, maxConcurrentExecutions: 10, maxPayloadBytes: 1_048_576, maxStateBytes: 262_144 },
    resources: { memoryUsageBytes: 1, eventLoopDelayMs: 150, concurrentExecutions: 0, maxConcurrentExecutions: 10 },
    status: 'degraded'
  })
  t.is(payloadOf(await client.ask(call(1, 'health', { a: 1 })))['code'], 'INVALID_ARGUMENT')
})

/** A node with so many slots, the first `taken` of them in use, and its health as the tools say it. */
async function healthWith(t: Assert, slots: number, taken: number): Promise<readonly HealthResponse[]> {
  const registry = new ToolRegistry(createSchemaCompiler())
  const scene: McpScene = new McpScene({
    maxConcurrentExecutions: slots,
    sources: [
      adminTools({
        settings: { adminRegistrationEnabled: true, dynamicRegistrationEnabled: true, adminPolicy: 'local_stdio_only' },
        caller: { transport: 'stdio', hasToken: false },
        compile: createSchemaCompiler(),
        registry,
        isTaken: () => Promise.resolve(false),
        health: (args, context) => handler(args, context),
        sendMessage: () => Promise.resolve(null)
      }),
      registry
    ]
  })
  const settings = {
    defaultTimeoutMs: 30_000,
    maxConcurrentExecutions: slots,
    maxPayloadBytes: 1_048_576,
    maxStateBytes: 262_144
  }
  const { definition, handler } = healthTool({ name: 'node', version: '1.0.0', limits: scene.limits, settings })
  scene.registry.register(definition, handler, HEALTH_OPTIONS)
  const client = scene.connect(t)
  await client.open()
  await client.ask(call('r', 'admin/registerTool', { name: 'x.pulse', description: '', toolType: 'health' }))
  let begun = 0
  scene.tool('hold', () => {
    begun++
    return new Promise(() => {})
  })
  for (let i = 0; i < taken; i++) client.write(call(`hold${i}`, 'hold'))
  const names = ['health', 'x.pulse', 'x__pulse']
  // Together, since none may count another one.
  const before = client.answers.length
  for (const name of names) client.write(call(name, name))
  const answers = (await client.heard(before + names.length)).slice(before)
  t.is(begun, taken)
  return answers.map((one) => payloadOf(one) as unknown as HealthResponse)
}

test('health needs no slot and counts no call of its own, under any name: an idle node is healthy, a full one answers', async (t: Assert) => {
  for (const slots of [1, 2, 3, 5])
    for (const taken of [0, slots - 1, slots]) {
      const status = taken === slots ? 'unhealthy' : taken > slots * 0.8 ? 'degraded' : 'healthy'
      for (const { status: seen, resources } of await healthWith(t, slots, taken)) {
        t.is(seen, status, `${taken} of ${slots} slots`)
        t.is(resources.concurrentExecutions, taken)
      }
    }
})

test('the meter of the process sees a blocked event loop', async (t: Assert) => {
  const meter = startProcessMeter(systemClock())
  t.teardown(() => meter.close())
  t.ok(meter.memoryBytes() > 1_000_000)
  // Some samples first; then one that comes late.
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setTimeout(resolve, 21))
  const until = performance.now() + 200
  while (performance.now() < until) continue
  while (meter.loopDelayMs() < 100) await new Promise((resolve) => setTimeout(resolve, 5))
  t.ok(meter.loopDelayMs() >= 100, `${meter.loopDelayMs()} ms`)
})
