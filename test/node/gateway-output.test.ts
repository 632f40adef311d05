import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { Guardrails } from '../../src/adapters/a2a/guardrails.js'
import { GatewayTasks } from '../../src/node/gateway.js'
import type { GatewayEvent } from '../../src/domain/gateway/task.js'
import type { Principal } from '../../src/ports/node-api.js'
import { agentDefinition, capability, FakeAgent, type Script } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { holds } from '../support/holds.js'

const ALICE: Principal = { kind: 'token', name: 'token alice', id: 'tok_a', tier: 0, sandboxId: null, scopes: ['read', 'send'] }
const input = { maxLength: 1000, deny: [] }

async function said(
  t: Assert,
  script: Script,
  output: { readonly maxLength: number; readonly deny: readonly string[] },
  more: object = {}
) {
  const world = new World(t)
  const agent = new FakeAgent(
    agentDefinition('speaker', { capabilities: [capability('speaker.do', { sideEffect: 'none', ...more })] }),
    script
  )
  const owner = await world.owner({ agents: [agent] })
  const gateway = new GatewayTasks(owner.core, null, new Guardrails({ input, output }).output)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const message = { messageId: 'm', role: 'user' as const, parts: [{ text: 'go' }] }
  const request = { message, agent: 'speaker', skill: null, wait: false }
  const told = async () => {
    const reply = await gateway.send(ALICE, { ...request, mayAnswer: false })
    if (reply.kind !== 'task') throw new Error('no task')
    await world.settle()
    const { id } = reply.snapshot.task
    const events: GatewayEvent[] = []
    for await (const event of gateway.follow(ALICE, id, { after: 0, untilRest: true })) events.push(event)
    const { tasks } = await gateway.list(ALICE, {}, { after: null, limit: 5, isWhole: true })
    const got = await gateway.get(ALICE, id)
    return { state: got.task.state, message: got.task.message, text: JSON.stringify([events, tasks, got]), events }
  }
  return { told, answer: () => gateway.send(ALICE, { ...request, mayAnswer: true, wait: true }), agent, world }
}

const chunk = (text: string, append: boolean) => ({ a2a: { artifact: { artifactId: 'out', parts: [{ text }] }, append } })
const DENY = { maxLength: 1000, deny: ['top ?secret'] }

test('what an agent may not say is in no task, event or list: neither result, chunk, report, question nor failure', async (t: Assert) => {
  const scripts: Record<string, Script> = {
    result: () => ({ ok: true, result: { text: 'top secret' } }),
    chunks: (_task, run) => {
      for (const [at, text] of ['good top', ' sec', 'ret'].entries()) run.progress(chunk(text, at > 0))
      return { ok: true, result: null }
    },
    reports: (_task, run) => {
      for (const text of ['good top', 'sec', 'ret']) run.progress(text)
      return { ok: true, result: 'fine' }
    },
    question: () => ({ ok: true, result: { a2a: { state: 'input-required', message: 'top secret?' } } }),
    failure: () => ({ ok: false, code: 'TASK_FAILED', message: 'no top secret here' })
  }
  for (const [what, script] of Object.entries(scripts)) {
    const { state, message, text } = await (await said(t, script, DENY)).told()
    t.alike([state, message?.parts[0]?.metadata], ['failed', { guardrail: { on: 'output', rule: 'deny', place: 0 } }], what)
    t.absent(/secret|good top|sec/.test(text.replaceAll('a2a.guardrails', '')), text)
  }
})

test('an answer without a task is held back as well, and who says nothing wrong is heard in full', async (t: Assert) => {
  const bad = await said(t, () => ({ ok: true, result: 'top secret' }), DENY)
  const error = await bad.answer().then(
    () => null,
    (thrown: unknown) => thrown as { code: string; message: string }
  )
  t.alike([error?.code, error?.message.includes('secret')], ['INVALID_OUTPUT', false])
  const speak: Script = (_task, run) => {
    run.progress(chunk('one ', false))
    run.progress('half way')
    run.progress(chunk('two', true))
    return { ok: true, result: 'done' }
  }
  const { state, events } = await (await said(t, speak, DENY)).told()
  const kinds = events.flatMap((event) => (event.type === 'artifact' ? [event.artifact.parts[0]?.text] : []))
  t.alike([state, kinds], ['completed', ['one ', 'two', 'done']])
})

test('an agent that says too much is stopped, and its run is canceled', async (t: Assert) => {
  const { told, agent, world } = await said(
    t,
    (_task, run) => {
      for (let i = 0; i < 20; i++) run.progress(chunk('x'.repeat(100), i > 0))
      return null
    },
    { maxLength: 1000, deny: [] }
  )
  const { state, message } = await told()
  const guardrail = message?.parts[0]?.metadata?.['guardrail'] as { readonly rule: string } | undefined
  t.alike([state, guardrail?.rule], ['failed', 'maxLength'])
  await world.settle()
  t.is(agent.open.length, 0, 'nobody works on for nobody')
})

test('what stands around the pieces of a text does not count, and what was held back is counted once', async (t: Assert) => {
  for (const [pieces, as] of [
    [[600], chunk],
    [Array.from({ length: 100 }, () => 10), chunk],
    [Array.from({ length: 100 }, () => 10), (text: string) => text]
  ] as const) {
    const speak: Script = (_task, run) => {
      for (const [at, length] of pieces.entries()) run.progress(as('x'.repeat(length), at > 0))
      return { ok: true, result: null }
    }
    const { state, message } = await (await said(t, speak, DENY)).told()
    t.is(state, 'completed', message?.parts[0]?.text)
  }
})

test('however a text is cut into chunks, one that is denied is never told, and any other is', async (t: Assert) => {
  const piece = fc.constantFrom('top', ' ', 'secret', 'sec', 'ret', 'a', 'to', 'p')
  const property = fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), fc.boolean(), async (pieces, asReports) => {
    const speak: Script = (_task, run) => {
      for (const [at, text] of pieces.entries()) run.progress(asReports ? text : chunk(text, at > 0))
      return { ok: true, result: null }
    }
    const { state, events } = await (await said(t, speak, DENY)).told()
    const isDenied = /top ?secret/.test(pieces.join(''))
    const heard = events.some(
      (event) => event.type === 'artifact' || (event.type === 'status' && event.state === 'working' && event.message !== undefined)
    )
    return isDenied ? state === 'failed' && !heard : state === 'completed' && heard
  })
  await holds(t, property, 100)
})
