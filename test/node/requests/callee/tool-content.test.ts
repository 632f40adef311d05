import { randomBytes } from 'node:crypto'
import test, { type Assert } from 'brittle'
import type { ToolContent } from '../../../../src/domain/task/tool-content.js'
import type { FakeAgent } from '../../../support/fake-agents.js'
import { requestScene } from '../../../support/request-scene.js'

const MEGABYTE = 1_048_576
const PICTURE = randomBytes(MEGABYTE)
const CONTENT: ToolContent = {
  content: [
    { type: 'text', text: 'look' },
    { type: 'image', data: PICTURE.toString('base64'), mimeType: 'image/png' }
  ]
}
const PLAIN = { content: 'as others get it' }

function finish(agent: FakeAgent): void {
  agent.open[0]?.end({ ok: true, result: PLAIN, content: CONTENT })
}

test('a picture of 1 MB passes a link in at most 1.05 MB, and arrives as bytes', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const asked = await ask({ wantsContent: true })
  await world.settle()
  let spent = 0
  world.net.sent = (_link, frame) => {
    spent += frame.length
  }
  finish(agent)
  const answer = await asked.answer
  await world.settle()
  t.ok(spent >= MEGABYTE && spent <= 1.05 * MEGABYTE, `${spent} bytes`)
  const { content } = (answer.outcome === 'COMPLETED' ? answer.result : { content: [] }) as ToolContent
  t.alike(content[0], { type: 'text', text: 'look' })
  t.ok(PICTURE.equals(content[1]?.['data'] as Uint8Array))
})

test('a caller of an earlier build, which asks for no content, gets the plain result', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const asked = await ask()
  await world.settle()
  finish(agent)
  t.alike(await asked.answer, { outcome: 'COMPLETED', result: PLAIN })
})

test('content of a failure goes to a caller that asks for it, and the task keeps its code', async (t: Assert) => {
  const content = [{ type: 'text', text: 'two\nlines' }]
  for (const wantsContent of [true, false]) {
    const { world, agent, ask, task } = await requestScene(t, { timeoutMs: 10_000 })
    const asked = await ask({ wantsContent })
    await world.settle()
    agent.open[0]?.end({ ok: false, code: 'TASK_FAILED', message: 'two lines', content })
    const answer = await asked.answer
    const error = answer.outcome === 'FAILED' ? answer.error : null
    t.alike([error?.code, error?.data], ['TASK_FAILED', wantsContent ? { content } : undefined])
    t.is(task(asked)?.state, 'failed')
  }
})

test('a result in the form of MCP fits the schema by its value, and is a failure when it says so', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const text = { content: [{ type: 'text', text: 'no' }] }
  for (const [result, outcome] of [
    [text, 'COMPLETED'],
    [{ ...text, isError: true }, 'FAILED']
  ] as const) {
    const asked = await ask()
    await world.settle()
    agent.finish(result)
    t.is((await asked.answer).outcome, outcome)
  }
})
