import { mkdir, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { startControlServer } from '../../src/adapters/control/server.js'
import { COMMANDS, type CommandRow } from '../../src/cli/terminal/table.js'
import { NodeError } from '../../src/kit/errors.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { FakeNodeApi } from '../contracts/node-api-fake.js'
import { tempDir } from '../support/tmp.js'
import { fakeHome, type Ran, run } from './command-line.js'

/** What a row needs beside its arguments to reach a node. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'policy test': ['--from', 'L1', '--to', 'text'],
  'swarm run': ['--capability', 'text.stats'],
  'doc access': ['--see', 'everybody'],
  'doc rm': ['--everywhere'],
  'doc restore': ['--at', '1h'],
  'a2a push retry': ['--all'],
  'peers add': ['--address', '127.0.0.1:9'],
  'peers remove': ['--address', '127.0.0.1:9'],
  call: ['{}'],
  audit: ['--since', '1h']
}
const WORDS: Readonly<Record<string, string>> = {
  json: '{}',
  tier: 'L1',
  trust: 'guest',
  text: 'hi',
  server: 'time',
  tool: 'now',
  shell: 'bash',
  address: 'desktop:x'
}

interface Row {
  readonly words: readonly string[]
  readonly spec: CommandRow
}

/** Every command that runs, with the words that it is called by. */
function rowsOf(specs: readonly CommandRow[], before: readonly string[] = []): Row[] {
  return specs.flatMap((spec) => {
    const words = [...before, spec.name]
    return [...(spec.load === undefined ? [] : [{ words, spec }]), ...rowsOf(spec.sub ?? [], words)]
  })
}

const ROWS = rowsOf(COMMANDS)
const ONLINE = ROWS.filter(({ spec }) => spec.offline !== true)

/** The command line of a row; `file` is an existing file. */
function lineOf({ words, spec }: Row, file: string): string[] {
  const names = (spec.args ?? '').match(/<[^>]+>/g) ?? []
  const given = names.map(
    (name) => WORDS[name.slice(1, -1)] ?? (name.includes('file') || name.includes('json') ? file : 'x')
  )
  return [...words, ...given, ...(NEEDED[words.join(' ')] ?? [])]
}

function hasTimeout({ spec }: Row): boolean {
  return (spec.options ?? []).some(({ flags }) => flags.startsWith('--timeout '))
}

/** A node whose calls and watches run out of time from the nth on. */
class SlowAt extends FakeNodeApi {
  #left: number

  constructor(nth: number) {
    // The process of `stop` is gone at once.
    super({ calls: { 'node.stop': () => ({ pid: 2 ** 22 }) } })
    this.#left = nth
  }

  override async call(...args: Parameters<FakeNodeApi['call']>): ReturnType<FakeNodeApi['call']> {
    this.#count()
    return await super.call(...args)
  }

  override async *watch(...args: Parameters<FakeNodeApi['watch']>): ReturnType<FakeNodeApi['watch']> {
    this.#count()
    for await (const item of super.watch(...args)) {
      yield item
      // A watch is read once: it would go on for good.
      return
    }
  }

  #count(): void {
    if (this.#left-- <= 0)
      throw new NodeError('TIMEOUT', 'not done in time; it may still be done', { data: { timeoutMs: 15_000 } })
  }
}

async function homeOf(t: Assert, api: () => NodeApi): Promise<string> {
  const home = await tempDir(t)
  await mkdir(path.join(home, 'run'), { mode: 0o700 })
  const server = await startControlServer({ path: path.join(home, 'run', 'control.sock'), tier: () => 0, apiFor: api })
  t.teardown(() => server.close())
  return home
}

/** The file is for `mesh set`, `backup` and others. */
async function anyFile(t: Assert): Promise<string> {
  const file = path.join(await tempDir(t), 'any.json')
  await writeFile(file, '{"sandboxes":{"enforced":true,"allow":[]}}')
  return file
}

test('every command that can end with TIMEOUT has the option --timeout, and its error names it', async (t: Assert) => {
  const file = await anyFile(t)
  const late = new Map<string, number>()
  const deepest = 4
  for (let nth = 0; nth < deepest; nth++) {
    let api: NodeApi = new SlowAt(nth)
    const home = await homeOf(t, () => api)
    for (const row of ONLINE.filter(({ spec }) => spec.name !== 'serve')) {
      api = new SlowAt(nth)
      const name = row.words.join(' ')
      const { code, stderr } = await run([...lineOf(row, file), '--home', home], { env: { EDITOR: 'true' } })
      if (code !== 6) continue
      late.set(name, (late.get(name) ?? 0) + 1)
      t.ok(hasTimeout(row), `${name} has it`)
      t.ok(/try: a2a-node .*--(?:timeout|deadline) \d+(?:ms|s|m)\b/.test(stderr), `${name}, call ${nth}: ${stderr}`)
    }
  }
  const silent = ONLINE.map(({ words }) => words.join(' ')).filter((name) => !late.has(name))
  t.alike(silent, ['mcp serve'], 'each command that asks a node was seen to run out of time')
  t.ok(late.get('invite') === 3 && (late.get('doc set') ?? 0) > 1, 'later calls of a command too')
})

test('a command without --timeout asks no running node', async (t: Assert) => {
  const { home, fake } = await fakeHome(t)
  const file = await anyFile(t)
  const offline = ROWS.filter((row) => !hasTimeout(row))
  t.ok(offline.length >= 10 && offline.every(({ spec }) => spec.offline === true))
  for (const row of offline) {
    const { code } = await run([...lineOf(row, file), '--home', home], { env: { HOME: home } })
    t.not(code, 6, row.words.join(' '))
  }
  t.alike(
    fake.seen.map(({ name }) => name),
    ['node.status'],
    'config check alone asks a node, and goes on without an answer'
  )
})

test('a command gives a node that answers nothing the time of --timeout, and says that it still runs', async (t: Assert) => {
  const home = await tempDir(t)
  const file = await anyFile(t)
  await mkdir(path.join(home, 'run'), { mode: 0o700 })
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => void sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(path.join(home, 'run', 'control.sock'), resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  // The time of these is the limit of their work, or that of a join; `mcp serve` outlives a node that does not answer.
  const rows = ONLINE.filter(
    ({ spec, words: [first = '', ...more] }) =>
      spec.name !== 'serve' &&
      !['stop', 'backup', 'files'].includes(first) &&
      (more.length > 0 || !['call', 'send', 'start'].includes(first))
  )
  const ran = await Promise.all(
    rows.map(async (row): Promise<readonly [string, Ran]> => {
      const options = { env: { EDITOR: 'true' } }
      return [row.words.join(' '), await run([...lineOf(row, file), '--home', home, '--timeout', '150ms'], options)]
    })
  )
  for (const [name, { code, stderr }] of ran) {
    t.is(code, 6, `${name}: ${stderr}`)
    t.ok(/within (?:150 ms|1\.1 s)/.test(stderr) && stderr.includes('the node still runs'), `${name}: ${stderr}`)
    t.ok(stderr.includes('--timeout 300ms'), `${name}: ${stderr}`)
  }
})

test('stop waits for the end of the process as long as --timeout says', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { pid: process.pid, calls: { 'node.stop': () => ({ pid: process.pid }) } })
  const { code, stderr } = await cli(['stop', '--timeout', '200ms'])
  t.is(code, 6)
  t.ok(stderr.includes('has not ended within 200 ms; it still runs, and is closing'), stderr)
  t.ok(stderr.includes('try: a2a-node stop --timeout 400ms'), stderr)
})

test('the step of a join that nobody answered shows no invite code', async (t: Assert) => {
  const { Output } = await import('../../src/cli/terminal/output.js')
  const sink = { write: () => true }
  const typed = (...words: string[]) =>
    new Output({ json: false, color: 'never', out: sink, err: sink, env: {}, home: null, typed: words } as never)
  t.is(typed('start', '--join', 'a2a-secret').retyped('--timeout', '40s'), 'a2a-node start --join - --timeout 40s')
  t.is(
    typed('start', '--join=a2a-secret', '--detach').retyped('--timeout', '40s'),
    'a2a-node start --join=- --detach --timeout 40s'
  )
})
