import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { isRecord } from '../../../src/kit/json.js'
import { freePort, type TestMesh, type TestNode, untilAgent, untilOnline } from '../../support/nodes.js'
import type { Teardown } from '../../support/tmp.js'
import { JSON_RPC } from './bindings.js'
import { DATA } from './cases.js'
import { faultsOf } from './matches.js'
import { preparePython, PYTHON } from './clients/programs.js'
import type { CaseResult } from './report.js'
import type { Verdict } from './run-case.js'

const TURNS = 6
/** Turns after which every process starts again: with an open question, and without one. */
const RESTARTS = [2, 4, 5]
const WAY = 'a2a-python 1.3.0 agent'
const TURN_MS = 30_000

/**
 * Six turns of a client with an agent of the Python SDK, which a node one hop away imports. The second turn is a
 * question. All three processes start again between turns.
 */
export async function runTurns(t: Teardown, mesh: TestMesh): Promise<CaseResult[]> {
  const missing = await preparePython()
  const result = (id: string, verdict: Verdict): CaseResult => ({
    id,
    level: 'turn',
    way: WAY,
    place: 'hop',
    ...verdict
  })
  const ids = Array.from({ length: TURNS }, (_, at) => `turn ${at + 1}`)
  if (missing !== null) return ids.map((id) => result(id, { state: 'skipped', why: missing }))
  const scene = await startScene(t, mesh)
  const turns: (TurnRecord | undefined)[] = []
  const results: CaseResult[] = []
  for (const [at, id] of ids.entries()) {
    const verdict = await oneTurn(scene, at + 1, turns).catch(
      (error: unknown): Verdict => ({ state: 'failed', why: error instanceof Error ? error.message : String(error) })
    )
    results.push(result(id, verdict))
    if (RESTARTS.includes(at + 1)) await scene.restart()
  }
  return results
}

/** What one turn gave: the task of the node, and what the agent saw. */
interface TurnRecord {
  readonly task: string
  readonly context: string
  readonly seen: Readonly<Record<string, unknown>>
}

/** Does a turn, compares it with those before, and adds it to them. */
async function oneTurn(scene: Scene, turn: number, turns: (TurnRecord | undefined)[]): Promise<Verdict> {
  const [before] = turns.slice(-1)
  const isAnswer = turn === 3
  const about = before === undefined ? {} : isAnswer ? { taskId: before.task } : { contextId: before.context }
  turns.push(undefined)
  const message = { messageId: `turn-${turn}`, role: 'ROLE_USER', parts: [{ text: `${turn}` }], ...about }
  const signal = AbortSignal.timeout(TURN_MS)
  const answer = await JSON_RPC.ask('SendMessage', { message }, { url: scene.url(), token: scene.token, signal })
  const task = isRecord(answer.body) && isRecord(answer.body['task']) ? answer.body['task'] : {}
  const wanted = {
    'status.state': turn === 2 ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_COMPLETED',
    contextId: before?.context ?? { like: '.' },
    id: isAnswer ? before?.task : { like: '.' },
    ...(turn === 2 ? { 'status.message.parts[0].text': 'Which?' } : {})
  }
  const seen = seenBy(task)
  const remote = turns.find((one) => one?.seen['context'] !== undefined)?.seen['context']
  const faults = [
    ...faultsOf(task, wanted),
    ...(turn === 2 ? [] : faultsOf(seen, { text: `${turn}`, isFurther: isAnswer, context: remote ?? { like: '.' } }))
  ]
  turns[turns.length - 1] = { task: String(task['id']), context: String(task['contextId']), seen }
  const [why] = faults
  return why === undefined ? { state: 'passed' } : { state: 'failed', why }
}

/** The agent says in its artifact what it saw. */
function seenBy(task: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const [, json] = /"(\{\\"text.*?\})"/.exec(JSON.stringify(task['artifacts'] ?? null)) ?? []
  if (json !== undefined) return JSON.parse(JSON.parse(`"${json}"`) as string) as Readonly<Record<string, unknown>>
  const data = JSON.stringify(task['artifacts'] ?? null)
  const [, object = '{}'] = /"data":(\{.*?\})/.exec(data) ?? []
  return JSON.parse(object) as Readonly<Record<string, unknown>>
}

interface Scene {
  readonly token: string
  url(): string
  restart(): Promise<void>
}

async function startScene(t: Teardown, mesh: TestMesh): Promise<Scene> {
  const dir = await mesh.dir()
  const port = await freePort()
  const homes = { far: path.join(dir, 'far'), near: path.join(dir, 'near') }
  for (const home of Object.values(homes)) fs.mkdirSync(home)
  const host = `127.0.0.1:${port}`
  const agent = `    speaker: { card: "http://${host}/.well-known/agent-card.json" }\n`
  fs.writeFileSync(path.join(homes.far, 'config.yaml'), `a2a:\n  allowPrivate: ["${host}"]\n  agents:\n${agent}`)
  const agentOf = (): Promise<ChildProcess> => startAgent(t, port, path.join(dir, 'tasks.json'))
  let python = await agentOf()
  let far: TestNode = await mesh.start('far', { home: homes.far })
  const { code } = await far.api.call('invite.create', { trust: 'mine' })
  let near: TestNode = await mesh.start('near', { home: homes.near, join: code, args: ['--http', '0'] })
  const ready = async (): Promise<void> => {
    await untilOnline(near, 1)
    await untilAgent(near, 'speaker@far')
  }
  await ready()
  const { token } = await near.api.call('token.create', { name: 'turns', scopes: ['read', 'send'] })
  return {
    token,
    url: () => `${near.info.http ?? ''}/agents/speaker@far`,
    restart: async () => {
      await Promise.all([near.stop(), far.stop(), ended(python)])
      python = await agentOf()
      far = await mesh.start('far', { home: homes.far })
      near = await mesh.start('near', { home: homes.near, args: ['--http', '0'] })
      await ready()
    }
  }
}

/** Starts the agent; resolves when it serves. */
async function startAgent(t: Teardown, port: number, file: string): Promise<ChildProcess> {
  const child = spawn(PYTHON, [path.join(DATA, 'clients', 'server.py'), `${port}`, file], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => ended(child))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (errors += text))
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error(`the agent ended: ${errors.slice(-400)}`)))
  ])
  return child
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}
