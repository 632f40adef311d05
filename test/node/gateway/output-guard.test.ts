import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { Guardrails } from '../../../src/adapters/a2a/server/guardrails.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { GatewayEvent } from '../../../src/domain/gateway/task.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { agentDefinition, capability, FakeAgent, type Script } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}
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
  const gateway = new TaskService(owner.core, { rules: new Guardrails({ input, output }).output })
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
    return { id, state: got.task.state, message: got.task.message, text: JSON.stringify([events, tasks, got]), events }
  }
  const goOn = async (taskId: string) => {
    await gateway.send(ALICE, {
      ...request,
      message: { ...message, messageId: 'm2', parts: [{ text: 'yes' }], taskId },
      mayAnswer: false
    })
    await world.settle()
    return (await gateway.get(ALICE, taskId)).task.state
  }
  return { told, goOn, answer: () => gateway.send(ALICE, { ...request, mayAnswer: true, wait: true }), agent, world }
}

const chunkOf = (artifactId: string, texts: readonly string[], append: boolean) => ({
  a2a: { artifact: { artifactId, parts: texts.map((text) => ({ text })) }, append }
})
const chunk = (text: string, append: boolean) => chunkOf('out', [text], append)
const DENY = { maxLength: 1000, deny: ['top ?secret'] }

test('a denied text of an agent is in no task, event or list: neither result, chunk, report, question nor failure', async (t: Assert) => {
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
    t.alike(
      [state, message?.parts[0]?.metadata],
      ['failed', { guardrail: { on: 'output', rule: 'deny', place: 0 } }],
      what
    )
    t.absent(/secret|good top|sec/.test(text.replaceAll('a2a.guardrails', '')), text)
  }
})

test('the reason of an end that an agent states is judged as its client gets it, in every state', async (t: Assert) => {
  for (const state of ['rejected', 'failed', 'canceled']) {
    const stating =
      (message: unknown): Script =>
      () => ({ ok: true, result: { a2a: { state, message } } })
    // The error of the task has it as JSON, with other characters.
    const { message, text } = await (
      await said(t, stating({ why: 'the "top"\tsecret' }), { maxLength: 1000, deny: ['"top"\tsecret'] })
    ).told()
    t.alike(message?.parts[0]?.metadata, { guardrail: { on: 'output', rule: 'deny', place: 0 } }, state)
    t.absent(text.includes('secret'), text)
    const fine = await (await said(t, stating({ why: 'no room' }), DENY)).told()
    t.ok(fine.text.includes('no room'), fine.text)
  }
})

test('an answer without a task is checked as well, and an output without denied text passes whole', async (t: Assert) => {
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

test('text around the pieces does not count, and a withheld output is counted once', async (t: Assert) => {
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

test('a denied text is never sent and any other is, for any cuts into chunks', async (t: Assert) => {
  const piece = fc.constantFrom('top', ' ', 'secret', 'sec', 'ret', 'a', 'to', 'p')
  const property = fc.asyncProperty(
    fc.array(piece, { minLength: 1, maxLength: 8 }),
    fc.boolean(),
    async (pieces, asReports) => {
      const speak: Script = (_task, run) => {
        for (const [at, text] of pieces.entries()) run.progress(asReports ? text : chunk(text, at > 0))
        return { ok: true, result: null }
      }
      const { state, events } = await (await said(t, speak, DENY)).told()
      const isDenied = /top ?secret/.test(pieces.join(''))
      const heard = events.some(
        (event) =>
          event.type === 'artifact' ||
          (event.type === 'status' && event.state === 'working' && event.message !== undefined)
      )
      return isDenied ? state === 'failed' && !heard : state === 'completed' && heard
    }
  )
  await holds(t, property, 100)
})

test('a denied text that is cut anywhere, over parts, chunks, artifacts, words and the result, is never sent', async (t: Assert) => {
  const text = 'all of it is top secret, they say'
  const cuts = fc.array(
    fc.record({ at: fc.integer({ min: 1, max: text.length - 1 }), as: fc.constantFrom('out', 'other', 'words') }),
    {
      maxLength: 4
    }
  )
  const property = fc.asyncProperty(
    cuts,
    fc.constantFrom('result', 'question', 'failure', 'nothing'),
    async (found, end) => {
      const places = [...new Map(found.map((cut) => [cut.at, cut])).values()].sort((a, b) => a.at - b.at)
      const pieces = places.map(({ at, as }, nth) => ({ as, text: text.slice(places[nth - 1]?.at ?? 0, at) }))
      const rest = text.slice(places.at(-1)?.at ?? 0)
      const speak: Script = (_task, run) => {
        const begun = new Set<string>()
        for (const { as, text: piece } of pieces)
          run.progress(as === 'words' ? piece : chunkOf(as, [piece], begun.has(as)))
        for (const { as } of pieces) begun.add(as)
        if (end === 'nothing') run.progress(chunkOf('out', [rest.slice(0, 3), rest.slice(3)], true))
        if (end === 'failure') return { ok: false, code: 'TASK_FAILED', message: rest }
        if (end === 'nothing') return { ok: true, result: null }
        return {
          ok: true,
          result: end === 'result' ? { text: rest } : { a2a: { state: 'input-required', message: rest } }
        }
      }
      const { state, message } = await (await said(t, speak, DENY)).told()
      return state === 'failed' && message?.parts[0]?.metadata?.['guardrail'] !== undefined
    }
  )
  await holds(t, property, 150)
})

test('text in between, a line break and text before an answer do not hide a denied text', async (t: Assert) => {
  const speeches: Record<string, readonly object[]> = {
    'two artifacts by turns': [
      chunkOf('a', ['top '], false),
      chunkOf('b', ['x'], false),
      chunkOf('a', ['secret'], true)
    ],
    'one that is replaced': [
      chunkOf('a', ['top sec'], false),
      chunkOf('a', ['ret'], true),
      chunkOf('a', ['fine'], false)
    ],
    'two parts in lines': [chunkOf('a', ['top', 'secret'], false)],
    'what is left of two': [chunkOf('a', ['top '], false), chunkOf('b', ['x'], false), chunkOf('b', ['secret'], false)]
  }
  for (const [what, reports] of Object.entries(speeches)) {
    const speak: Script = (_task, run) => {
      for (const report of reports) run.progress(report)
      return { ok: true, result: null }
    }
    t.is((await (await said(t, speak, { maxLength: 1000, deny: ['top\\s?secret'] })).told()).state, 'failed', what)
  }
  const turns: Script = ({ input: given }, run) => {
    const isFirst = (given as { readonly text?: string }).text === 'go'
    run.progress(isFirst ? chunkOf('a', ['top '], false) : chunkOf('a', ['secret'], true))
    return { ok: true, result: isFirst ? { a2a: { state: 'input-required', message: 'go on?' } } : { text: 'done' } }
  }
  const { told, goOn } = await said(t, turns, DENY)
  const first = await told()
  t.is(first.state, 'input-required')
  t.is(await goOn(first.id), 'failed')
})
