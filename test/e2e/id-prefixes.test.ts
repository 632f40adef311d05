import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { COMMANDS, type CommandRow } from '../../src/cli/terminal/table.js'
import { MIN_ID_CHARACTERS } from '../../src/kit/resolve-id.js'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { freePort, type LocalNode, localMesh, until, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'
import { job } from '../support/swarm-agents.js'
import { receiver } from '../support/webhook.js'

/** One command with an id: `prefix` is that of its kind, `missing` its code for an unknown id. */
interface Case {
  readonly prefix: string
  readonly missing: string
  /** Words after the id. */
  readonly more?: readonly string[]
  /** Exit codes of a found id other than 0. */
  readonly codes?: readonly number[]
  /** An id that the command may use up. */
  id(scene: Scene): Promise<string>
}

interface Scene {
  readonly a: LocalNode
  readonly b: LocalNode
  readonly gateway: GatewayNode
  readonly swarm: string
  readonly task: string
  readonly push: string
}

const TASK = { prefix: 'task_', missing: 'TASK_NOT_FOUND', id: ({ task }: Scene) => Promise.resolve(task) }
const SWARM = { prefix: 'swarm_', missing: 'SWARM_NOT_FOUND', id: ({ swarm }: Scene) => Promise.resolve(swarm) }
const APPROVAL = { prefix: 'app_', missing: 'APPROVAL_NOT_FOUND', id: nextApproval }
const PEER = { prefix: '', missing: 'PEER_NOT_FOUND', id: ({ b }: Scene) => Promise.resolve(b.info.node.id) }

const ADDRESS = ['--address', '127.0.0.1:9']

/** Every command whose first argument is the id of a thing. */
const CASES: Readonly<Record<string, Case>> = {
  'tasks show': TASK,
  'tasks watch': TASK,
  'tasks wait': TASK,
  'tasks cancel': { ...TASK, codes: [9] },
  'swarm show': SWARM,
  'swarm watch': { ...SWARM, codes: [8] },
  'swarm results': SWARM,
  'swarm retry': { ...SWARM, codes: [1] },
  'swarm cancel': SWARM,
  'approvals show': APPROVAL,
  'approvals allow': APPROVAL,
  'approvals deny': APPROVAL,
  'invite revoke': { prefix: '', missing: 'INVITE_NOT_FOUND', id: newInvite },
  'a2a token revoke': { prefix: 'tok_', missing: 'TOKEN_NOT_FOUND', id: ({ a }) => created(a, 'token') },
  'a2a client revoke': { prefix: 'cli_', missing: 'CLIENT_NOT_FOUND', id: ({ a }) => created(a, 'client') },
  'a2a push retry': { prefix: 'hook_', missing: 'NOTIFICATION_NOT_FOUND', id: ({ push }) => Promise.resolve(push) },
  ping: { ...PEER, more: ['-c', '1'] },
  'peers show': PEER,
  'peers tier': { ...PEER, more: ['L2'] },
  'peers trust': { ...PEER, more: ['mine'] },
  'peers rename': { ...PEER, more: ['other'] },
  'peers add': { ...PEER, more: ADDRESS },
  'peers remove': { ...PEER, more: ADDRESS },
  doctor: { ...PEER, codes: [1] },
  'peers revoke': PEER
}

test('every command that takes an id takes the beginning of one, and refuses a shorter one and an unknown one', async (t) => {
  const commands = COMMANDS.flatMap((row) => withId(row, []))
  t.alike(commands.toSorted(), Object.keys(CASES).toSorted(), 'the table has every command with an id')
  const scene = await sceneOf(t)
  for (const [command, { prefix, missing, more = [], codes = [], id }] of Object.entries(CASES)) {
    const run = (text: string): ReturnType<LocalNode['cli']> => scene.a.cli([...command.split(' '), text, ...more])
    const whole = await id(scene)
    t.ok(whole.startsWith(prefix) && whole.length >= prefix.length + MIN_ID_CHARACTERS, `${command}: ${whole}`)
    const short = await run(whole.slice(0, prefix.length + MIN_ID_CHARACTERS - 1))
    t.is(short.code, 4, `${command}: ${short.stderr}`)
    const unknown = await run(`${prefix}${'y'.repeat(16)}`)
    t.is(unknown.code, 4, `${command}: ${unknown.stderr}`)
    t.ok(unknown.stderr.includes(`[${missing}]`), unknown.stderr)
    const found = await run(whole.slice(0, prefix.length + MIN_ID_CHARACTERS + 4))
    t.ok([0, ...codes].includes(found.code ?? -1), `${command}: ${found.code} ${found.stderr}`)
    t.absent(/NOT_FOUND|AMBIGUOUS_NAME/.test(found.stderr), found.stderr)
  }
})

/** The commands of a row whose first argument is an id or a peer. */
function withId({ name, args = '', sub = [] }: CommandRow, above: readonly string[]): string[] {
  const words = [...above, name]
  const own = /^[<[](id|peer)[\]>]/.test(args) ? [words.join(' ')] : []
  return [...own, ...sub.flatMap((row) => withId(row, words))]
}

/** A gateway `a` with a member `b`, an ended swarm with a failed item, and a notification that is not delivered. */
async function sceneOf(t: Assert): Promise<Scene> {
  const mesh = await localMesh(t)
  const allow = { A2A_NODE_A2A_ALLOW_PRIVATE: '127.0.0.1' }
  const home = path.join(await mesh.dir(), 'home')
  await fs.mkdir(home, { recursive: true })
  await fs.writeFile(path.join(home, 'config.yaml'), 'a2a: { oauth: { enabled: true } }\n')
  const start: typeof mesh.start = (name, options) => mesh.start(name, { ...options, env: allow })
  const gateway = await gatewayNode({ ...mesh, start }, 'a', { home, http: String(await freePort()) })
  const a = gateway.node
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code })
  await untilOnline(a, 1)
  await fs.writeFile(path.join(a.home, 'agents', 'do.md'), job('do', 'input.word === "bad" ? process.exit(3) : 1'))
  await fs.writeFile(
    path.join(a.home, 'policy.yaml'),
    'rules:\n  - { from: { node: b }, capability: text.*, decision: ask }\n'
  )
  await untilTrue(async () => (await a.api.call('policy.show', {})).rules.length === 1, 'a has the rule')
  return { a, b, gateway, ...(await workOf(a)), push: await undelivered(t, gateway) }
}

/** A swarm over items of which one failed, and a task of it. */
async function workOf(a: LocalNode): Promise<{ readonly swarm: string; readonly task: string }> {
  await untilAgent(a, 'do@a')
  const items = ['swarm', 'run', 'go', '--capability', 'job.do', '--items', '-', '--input', '{"word":"{item}"}']
  const ran = await a.cli([...items, '--retries', '0', '--json'], 'good\nbad\n')
  const { id } = JSON.parse(ran.stdout.trim().split('\n').at(-1) ?? '') as { id: string }
  const { tasks } = await a.api.call('tasks.list', {})
  return { swarm: id, task: tasks.find(({ state }) => state === 'completed')?.id ?? '' }
}

async function undelivered(t: Assert, gateway: GatewayNode): Promise<string> {
  const hook = await receiver(t)
  hook.answer(() => ({ status: 500 }))
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ data: { text: 'hello' } }] }
  // One event makes one notification, whose id no other one begins with.
  const hookConfig = { id: 'mine', url: hook.url, events: ['task.completed'] }
  const configuration = { returnImmediately: true, taskPushNotificationConfig: hookConfig }
  const params = { message, configuration }
  await ask(gateway, '/agents/talk', { json: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params } })
  await hook.until(1)
  const { waiting, dead } = await gateway.node.api.call('push.list', {})
  return [...waiting, ...dead][0]?.id ?? ''
}

/** The id of a message of `b` that waits for approval; another one when the last was decided. */
async function nextApproval({ a, b }: Scene): Promise<string> {
  const { approvals } = await a.api.call('approvals.list', {})
  if (approvals[0] !== undefined) return approvals[0].id
  void b.cli(['call', 'text@a', 'text.stats', '{"text":"one"}', '--no-wait'])
  const asked = await until(a.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  return asked.approvals[0]?.id ?? ''
}

async function newInvite({ a }: Scene): Promise<string> {
  await a.cli(['invite', '--guest'])
  const { invites } = await a.json<{ invites: readonly { id: string; state: string }[] }>(['invite', 'ls'])
  return invites.find(({ state }) => state === 'open')?.id ?? ''
}

async function created(a: LocalNode, kind: 'token' | 'client'): Promise<string> {
  return (await a.json<{ id: string }>(['a2a', kind, 'create', '--name', 'one'])).id
}
