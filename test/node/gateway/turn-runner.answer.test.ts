import test, { type Assert } from 'brittle'
import { MAX_PARTS } from '../../../src/domain/gateway/message.js'
import type { GatewaySnapshot } from '../../../src/domain/gateway/task.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { ALICE, gatewayOf } from '../../support/gateway.js'

const ASKED = { skill: null, mayAnswer: false, wait: false } as const

/**
 * A task whose agent says `Let me see.` in one turn of its model and `Two words.` in the next one, and gives this
 * result.
 */
async function answered(
  t: Assert,
  result: unknown,
  outputSchema: unknown = {}
): Promise<GatewaySnapshot & { readonly told: string[] }> {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow', { capabilities: [{ ...capability('slow.do'), outputSchema }] }))
  const gateway = await gatewayOf(t, await world.owner({ agents: [slow] }))
  const message = { messageId: 'm', role: 'user', parts: [{ text: 'a' }] } as const
  const reply = await gateway.send(ALICE, { ...ASKED, agent: 'slow', message })
  if (reply.kind !== 'task') throw new Error('an answer without a task')
  await world.settle()
  for (const [token, turn] of [
    ['Let me ', 1],
    ['see.', 1],
    ['Two ', 2],
    ['words.', 2]
  ] as const) {
    slow.open[0]?.run.progress({ token, turn })
    await world.settle()
  }
  slow.finish(result)
  await world.settle()
  const { id } = reply.snapshot.task
  const told: string[] = []
  for await (const event of gateway.follow(ALICE, id, { after: 0 }))
    told.push(event.type === 'artifact' ? `${event.append ? '+' : ''}${event.artifact.parts[0]?.text}` : event.type)
  return { ...(await gateway.get(ALICE, id)), told }
}

test('bytes in base64 are a file of their type; a text that is none stays a text', async (t: Assert) => {
  for (const [output, result, part] of [
    [
      { contentEncoding: 'base64', contentMediaType: 'image/png' },
      'iVBORw==',
      { raw: 'iVBORw==', mediaType: 'image/png' }
    ],
    [{ type: 'string', contentEncoding: 'base64' }, 'AQI=', { raw: 'AQI=', mediaType: 'application/octet-stream' }],
    [{ contentEncoding: 'base64' }, 'no base64', { text: 'no base64' }],
    [{ contentEncoding: 'quoted-printable' }, 'AQI=', { text: 'AQI=' }]
  ] as const) {
    const { artifacts } = await answered(t, result, output)
    t.alike(artifacts[0]?.parts, [part])
  }
})

test('the texts of a language model are the result in pieces, which its next turn replaces, and which are not sent again as a whole', async (t: Assert) => {
  const { artifacts, history, told } = await answered(t, 'Two words.')
  t.alike(artifacts, [{ artifactId: 'result', name: 'result', parts: [{ text: 'Two words.' }] }])
  t.alike(told, ['message', 'status', 'Let me ', '+see.', 'Two ', '+words.', '+', 'status'])
  t.is(history.length, 1, 'no piece is a message')
})

test('a result that differs from the text of the language model replaces it', async (t: Assert) => {
  const { artifacts, told } = await answered(t, { words: 2 })
  t.alike(artifacts, [
    { artifactId: 'result', name: 'result', parts: [{ data: { words: 2 }, mediaType: 'application/json' }] }
  ])
  t.is(told.length, 8)
})

test('a result with more artifacts than a task takes at once is one artifact as it is', async (t: Assert) => {
  const listOf = (count: number) => ({
    a2a: { artifacts: Array.from({ length: count }, (_, at) => ({ artifactId: `a${at}`, parts: [{ text: 'x' }] })) }
  })
  t.is((await answered(t, listOf(MAX_PARTS))).artifacts.length, MAX_PARTS + 1, 'with the words of its model')
  const { artifacts } = await answered(t, listOf(MAX_PARTS + 1))
  t.alike(artifacts[0]?.parts[0]?.data, listOf(MAX_PARTS + 1))
  t.is(artifacts.length, 1)
})
