import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { type RemoteServer, remoteServer } from '../support/a2a/remote-server.js'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { llmServer, streaming } from '../support/llm/llm-server.js'
import { LLAMA_CPP } from '../support/llm/shapes.js'
import { type LocalMesh, localMesh, type LocalNode, untilAgent, untilOnline } from '../support/nodes.js'

const TIMEOUT = { timeout: 180_000 }

const agentFile = (id: string, runtime: string): string =>
  `---\nname: ${id}\ndescription: Talks.\na2a:\n  capabilities:\n    - { id: ${id}.do, input: { type: object } }\n  runtime: ${runtime}\n---\n${id}\n`

/** Answers with what the agent has heard before, asks at the second turn, and sends two artifacts at the fourth. */
const KEEPER = `export default {
  run({ input, taskId }, { conversation }) {
    const heard = conversation.history.map(({ role, parts }) => role + ' ' + parts.map(({ text }) => text).join('|'))
    if (input.text === '2') return { a2a: { state: 'input-required', message: 'Which?', schema: { type: 'string' } } }
    if (input.text === '4') return { a2a: { message: 'two', artifacts: ['x', 'y'].map((id) => ({ artifactId: id, parts: [{ text: id }] })) } }
    return JSON.stringify([conversation.contextId, conversation.taskId === taskId, conversation.caller.kind, heard])
  }
}
`

const ECHO = `let text = ''
process.stdin.on('data', (chunk) => (text += chunk)).on('end', () => {
  const { conversation } = JSON.parse(text)
  console.log(JSON.stringify({ text: 'heard ' + conversation.history.length + ' before ' + conversation.message.parts[0].text }))
})
`

/** The node of the agents. */
async function farNode(mesh: LocalMesh, { llm, remote }: { llm: string; remote: RemoteServer }): Promise<string> {
  const home = await mesh.dir()
  fs.mkdirSync(path.join(home, 'agents'), { recursive: true })
  const write = (name: string, text: string): void => fs.writeFileSync(path.join(home, name), text)
  write('agents/keeper.md', agentFile('keeper', '{ type: module, path: ./keeper.mjs }'))
  write('agents/keeper.mjs', KEEPER)
  write('agents/echo.md', agentFile('echo', `{ type: command, command: ["${process.execPath}", ./echo.mjs] }`))
  write('agents/echo.mjs', ECHO)
  write('agents/thinker.md', agentFile('thinker', '{ type: llm, model: local/tiny }'))
  const agents = [
    'a2a:',
    `  allowPrivate: ["${remote.host}"]`,
    '  agents:',
    `    outside: { card: "${remote.cardUrl}" }`
  ]
  write('config.yaml', ['llm:', '  providers:', `    local: { url: "${llm}" }`, ...agents, ''].join('\n'))
  return home
}

interface TaskJson {
  readonly id: string
  readonly contextId: string
  readonly status: {
    readonly state: string
    readonly message?: { readonly parts: readonly { text?: string; data?: unknown }[] }
  }
  readonly artifacts?: readonly { readonly parts: readonly { readonly text: string }[] }[]
}

let sent = 0

async function say(
  near: GatewayNode,
  agent: string,
  text: string,
  place: { contextId?: string; taskId?: string } = {}
): Promise<TaskJson> {
  const message = { messageId: `c${++sent}`, role: 'ROLE_USER', parts: [{ text }], ...place }
  const { body } = await ask(near, `/agents/${agent}@far/message:send`, { json: { message, configuration: {} } })
  if (body['task'] === undefined) throw new Error(JSON.stringify(body))
  return body['task'] as TaskJson
}

const textOf = ({ artifacts = [] }: TaskJson): string =>
  artifacts
    .at(-1)
    ?.parts.map(({ text }) => text)
    .join('') ?? ''

/**
 * Six turns with each agent, of which the third may answer a question; both nodes start again after the second, fourth
 * and fifth.
 */
async function talk(agents: readonly string[], scene: { near: GatewayNode; restart(): Promise<GatewayNode> }) {
  const all = new Map<string, TaskJson[]>(agents.map((agent) => [agent, []]))
  for (let turn = 1; turn <= 6; turn++) {
    for (const [agent, turns] of all) {
      const [before] = turns.slice(-1)
      const contextId = before?.contextId
      const isAnswer = before?.status.state === 'TASK_STATE_INPUT_REQUIRED'
      const place = isAnswer ? { taskId: before?.id ?? '' } : contextId === undefined ? {} : { contextId }
      turns.push(await say(scene.near, agent, `${turn}`, place))
    }
    if (turn === 2 || turn === 4 || turn === 5) scene.near = await scene.restart()
  }
  return (agent: string): TaskJson[] => all.get(agent) ?? []
}

async function pairOf(mesh: LocalMesh, services: { llm: string; remote: RemoteServer }) {
  let near = await gatewayNode(mesh, 'near')
  const home = await farNode(mesh, services)
  const { code } = await near.node.api.call('invite.create', { trust: 'mine' })
  let far: LocalNode = await mesh.start('far', { home, join: code })
  const ready = async (): Promise<void> => {
    await untilOnline(near.node, 1)
    for (const id of ['keeper', 'echo', 'thinker', 'outside']) await untilAgent(near.node, `${id}@far`)
  }
  await ready()
  const restart = async (): Promise<GatewayNode> => {
    await near.node.stop()
    await far.stop()
    near = await gatewayNode(mesh, 'near', { home: near.node.home, dir: near.dir, token: near.token })
    far = await mesh.start('far', { home })
    await ready()
    return near
  }
  return { near, restart }
}

test(
  'six turns with agents one hop away keep their conversation over restarts of both nodes',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await localMesh(t)
    const llm = await llmServer(t, streaming([...LLAMA_CPP.text(['Well.']), LLAMA_CPP.usage(1, 1)]))
    const turns: { text: string; taskId: string; isFurther: boolean }[] = []
    const remote = await remoteServer(t, '1.0', ({ text, taskId, isFurther, end }) => {
      turns.push({ text, taskId, isFurther })
      if (text === '2') return end('input-required', 'Which?')
      end('completed', `re ${text}`)
    })
    const scene = await pairOf(mesh, { llm: llm.url, remote })

    const turnsOf = await talk(['keeper', 'thinker', 'outside', 'echo'], scene)
    const kept = turnsOf('keeper')
    const { contextId } = kept[0] ?? { contextId: '' }
    const [, asked, answered, both] = kept
    t.alike(asked?.status.message?.parts, [
      { text: 'Which?' },
      { data: { type: 'string' }, mediaType: 'application/schema+json' }
    ])
    t.is(answered?.id, asked?.id)
    t.alike([both?.artifacts?.length, both?.status.message?.parts[0]?.text], [2, 'two'])
    const first = JSON.stringify([contextId, false, 'token', []])
    const third = [`user 1`, `agent ${first}`, 'user 2', 'agent Which?|']
    t.alike(JSON.parse(textOf(kept[2])), [contextId, false, 'token', third])
    const sixth = JSON.parse(textOf(kept[5])) as [string, boolean, string, string[]]
    t.alike(sixth[3].slice(0, 4), third)
    t.alike(
      sixth[3].slice(4).filter((line) => line.startsWith('user')),
      ['user 3', 'user 4', 'user 5']
    )
    t.is(sixth[3][7], 'agent x|y|two')
    t.is(sixth[3].length, 10)

    t.alike(
      llm.seen.map(({ body }) => body.messages.map(({ content }) => content).slice(1)),
      ['1', '2', '3', '4', '5', '6'].map((_, at, all) =>
        all
          .slice(0, at + 1)
          .flatMap((n) => [n, 'Well.'])
          .slice(0, -1)
      )
    )

    const outside = turnsOf('outside')
    t.is(outside[2]?.id, outside[1]?.id)
    t.alike(
      turns.map(({ text, isFurther }) => [text, isFurther]),
      [1, 2, 3, 4, 5, 6].map((n) => [`${n}`, n === 3])
    )
    t.is(turns[2]?.taskId, turns[1]?.taskId, 'the answer goes to the task that asked')
    const contexts = remote.requests.flatMap(({ body }) => {
      const { message } = body['params'] as { message?: { contextId?: string } }
      return message === undefined ? [] : [message.contextId ?? '']
    })
    t.alike([contexts[0], new Set(contexts.slice(1)).size, contexts[1] === ''], ['', 1, false])

    t.alike(
      turnsOf('echo').map(textOf),
      [0, 2, 4, 6, 8, 10].map((n, at) => `heard ${n} before ${at + 1}`)
    )
  }
)
