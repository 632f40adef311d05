import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { startControlServer } from '../../src/adapters/control/server.js'
import { commandContext } from '../../src/cli/context.js'
import { Output } from '../../src/cli/terminal/output.js'
import type { Sink } from '../../src/cli/terminal/terminal.js'
import { buildProgram } from '../../src/cli/program.js'
import { COMMANDS, type CommandRow } from '../../src/cli/terminal/table.js'
import { asNodeError, NodeError } from '../../src/kit/errors.js'
import type { CallName, Calls, NodeApi, WatchName, Watches } from '../../src/ports/node-api.js'
import { FakeNodeApi } from '../contracts/node-api-fake.js'
import { tempDir } from '../support/tmp.js'
import { agent, documentDetail, peer, readingOf, swarm, swarmEvents, task } from './samples.js'

/**
 * Sets the title, clears the screen, colours and hides by a C1 control, turns the direction, hides letters, rings the
 * bell.
 */
const HOSTILE = 'a\u001b]0;title\u0007\u001b[2J\u009b8m\u202eb\u200bc\u{e0061}\u001b[8md\r\n\u001b[1Ae\u0008'
/** What decides how something is shown, and is no text of a peer. */
const DECIDING =
  /^(?:state|status|type|kind|role|code|outcome|path|origin|strategy|transport|tier|waitingFor|schema|.*At)$/
/** Not of peers, or they run something for good. */
const LEFT_OUT = new Set([
  'start',
  'restore',
  'mcp serve',
  'completion',
  'doc edit',
  'agents new',
  'agents run',
  'backup'
])

function corrupt(value: unknown): unknown {
  if (typeof value === 'string') return value + HOSTILE
  if (Array.isArray(value)) return value.map(corrupt)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, DECIDING.test(key) ? one : corrupt(one)]))
}

/** Everything that it says comes from a hostile peer. */
class HostileApi implements NodeApi {
  readonly #fake: FakeNodeApi

  constructor(fake: FakeNodeApi) {
    this.#fake = fake
  }

  async call<N extends CallName>(name: N, params: Calls[N]['params']): Promise<Calls[N]['result']> {
    try {
      return corrupt(await this.#fake.call(name, params)) as Calls[N]['result']
    } catch (error) {
      throw hostileError(error)
    }
  }

  async *watch<N extends WatchName>(name: N, params: Watches[N]['params']): AsyncGenerator<Watches[N]['item']> {
    const ended = AbortSignal.abort()
    try {
      // Those that go on for good are not followed.
      const options =
        name === 'swarm.watch' || name.startsWith('message.') || name === 'node.events' ? {} : { signal: ended }
      for await (const item of this.#fake.watch(name, params, options)) yield corrupt(item) as Watches[N]['item']
    } catch (error) {
      throw hostileError(error)
    }
  }
}

function hostileError(error: unknown): NodeError {
  const { code, message } = asNodeError(error)
  const data = {
    candidates: [HOSTILE],
    usage: HOSTILE,
    expected: HOSTILE,
    faults: [
      { file: HOSTILE, reason: HOSTILE },
      { file: 'f', reason: HOSTILE }
    ]
  }
  return new NodeError(code, message + HOSTILE, { data, next: [`a2a-node call ${HOSTILE}`] })
}

/** A terminal that keeps what it is given. */
class Terminal implements Sink {
  text = ''
  readonly isTTY = true
  readonly columns = 100
  readonly rows = 40

  write(part: string | Uint8Array): boolean {
    this.text += typeof part === 'string' ? part : Buffer.from(part).toString('latin1')
    return true
  }
}

/** Every command that does something, with a word for each argument that it needs. */
function lines(specs: readonly CommandRow[], before: readonly string[] = []): string[][] {
  return specs.flatMap((spec) => {
    const words = [...before, spec.name]
    const own =
      spec.load === undefined || LEFT_OUT.has(words.join(' '))
        ? []
        : [[...words, ...argumentsOf(words.join(' '), spec.args ?? '')]]
    return words[0] === 'connect' ? [] : [...own, ...lines(spec.sub ?? [], words)]
  })
}

function argumentsOf(command: string, args: string): string[] {
  const known: Record<string, string[]> = {
    call: ['text@gpu-box', 'text.stats', '{}'],
    doctor: ['phone'],
    send: ['text@gpu-box', 'hello'],
    'swarm run': ['count', '--capability', 'text.stats', '--items', 'a'],
    'peers tier': ['phone', 'L2'],
    'peers add': ['phone', '--address', '10.0.0.5:7422'],
    'peers remove': ['phone', '--address', '10.0.0.5:7422'],
    'peers trust': ['phone', 'guest'],
    'policy test': ['--from', 'text@gpu-box', '--to', 'text@gpu-box', '--type', 'request']
  }
  return (
    known[command] ??
    [...args.matchAll(/<([^>]+)>/g)].map(([, name]) =>
      name === 'agent' ? 'text@gpu-box' : name === 'peer' ? 'phone' : 'x'
    )
  )
}

/** A command with each format that it has. */
function forms(line: readonly string[]): string[][] {
  const formats = line[0] === 'doc' && line[1] === 'export' ? ['text', 'json', 'yjs'] : []
  return formats.length === 0 ? [[...line]] : formats.map((format) => [...line, '--format', format])
}

/** A card with hostile texts in each place that a report may show. */
async function hostileCard(home: string): Promise<string> {
  const file = path.join(home, 'card.json')
  const url = `ftp://${HOSTILE}`
  const skills = [{ id: HOSTILE }, { id: HOSTILE, name: [HOSTILE], [HOSTILE]: null }]
  const interfaces = [
    { url, protocolBinding: HOSTILE, protocolVersion: HOSTILE },
    { url: `http://0.0.0.0/${HOSTILE}`, protocolBinding: 'jsonrpc' }
  ]
  const security = {
    securitySchemes: { [HOSTILE]: { [HOSTILE]: 1 } },
    securityRequirements: [{ schemes: { [`${HOSTILE}x`]: {} } }]
  }
  await writeFile(
    file,
    JSON.stringify({ name: HOSTILE, version: [HOSTILE], supportedInterfaces: interfaces, skills, ...security })
  )
  return file
}

function hostileApi(socket: string): HostileApi {
  const approval = {
    id: 'x',
    sender: 'boss@phone',
    target: 'text@laptop',
    type: 'request',
    capability: 'c',
    input: HOSTILE,
    reason: 'why',
    waitingSince: '2026-01-02T03:04:05.000Z'
  }
  const server = {
    name: 'x',
    agent: 'x',
    transport: 'stdio',
    url: 'http://x',
    state: 'ready',
    tools: [],
    pinned: null,
    pinnedBy: null,
    listed: null,
    change: null,
    lastError: 'e',
    lastListedAt: null,
    restarts: 0
  }
  const provider = { organization: 'o', url: 'https://o.example' }
  const reply = { outcome: 'COMPLETED', agent: 'text@gpu-box', taskId: 'x', payload: 'text', error: null, latencyMs: 1 }
  const detail = { ...documentDetail('x'), skipped: [{ node: { id: 'x', name: 'm' }, reason: 'r' }] }
  return new HostileApi(
    new FakeNodeApi({
      socket,
      peers: [peer('phone'), peer('gone', { status: 'revoked' })],
      agents: [agent('text', 'gpu-box', { provider }), agent('host', 'laptop')],
      tasks: [task('x'), task('y', { state: 'failed', error: new NodeError('TASK_FAILED', 'no').toBody() })],
      swarms: [swarm('partial')],
      swarmEvents: swarmEvents('partial'),
      events: [{ at: '2026-01-02T03:04:05.000Z', type: 'peer', message: 'came', data: { peer: 'phone' } }],
      approvals: [approval as never],
      servers: [server as never],
      status: { provider, problems: [{ code: 'PEER_OFFLINE', message: 'm', next: 'a2a-node peers' }] },
      live: [{ type: 'open', update: new Uint8Array([0, 0]) } as never],
      calls: {
        'message.call': () => reply as never,
        'message.send': () => reply as never,
        'documents.list': () => ({ documents: [detail], problems: [] }),
        'documents.show': () => detail,
        'documents.read': ({ type }) => readingOf(type, type === 'text' ? 'text' : type === 'map' ? {} : [])
      }
    })
  )
}

const STYLE = new RegExp(String.raw`\u001b\[(?:[012]|3[1236])m`, 'g')

test('no command moves the cursor of a terminal, changes it, or hides a letter, for any names and texts of a hostile peer', async (t: Assert) => {
  const home = await tempDir(t)
  await mkdir(path.join(home, 'run'), { mode: 0o700 })
  const socket = path.join(home, 'run', 'control.sock')
  const control = await startControlServer({ path: socket, tier: () => 0, apiFor: () => hostileApi(socket) })
  t.teardown(() => control.close())
  let shown = 0
  const all = [...lines(COMMANDS), ['agents', 'check', await hostileCard(home)]]
  for (const words of all.flatMap(forms)) {
    const terminal = new Terminal()
    const program = buildProgram(async (spec, args, options) => {
      const output = new Output({ json: false, color: 'always', out: terminal, err: terminal, env: {} })
      const context = commandContext({ output, home, env: {} })
      await (await spec.load?.())?.(context, args, options).catch((error: unknown) =>
        output.error(asNodeError(error).toBody())
      )
    })
    await program.parseAsync(words, { from: 'user' })
    const left = terminal.text.replace(STYLE, '')
    const found = /[^\P{Cc}\n\t]|[\u200b-\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u.exec(left)
    t.is(
      found,
      null,
      `${words.join(' ')}: ${JSON.stringify(left.slice(Math.max(0, (found?.index ?? 0) - 40)).slice(0, 80))}`
    )
    if (terminal.text.includes('title')) shown++
  }
  t.ok(shown > all.length / 2, `${shown} of ${all.length} commands showed something of the peer`)
})
