import { spawn, type ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect } from '../../src/client.js'
import type { NodeApi, NodeInfo, WatchName, Watches } from '../../src/ports/node-api.js'
import type { PeerInfo } from '../../src/ports/peer-api.js'
import { tempDir, type Teardown } from './tmp.js'

/** The repository, seen from build/test/support. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..')
/** The program as users run it. */
export const BIN = path.join(ROOT, 'bin', 'a2a-node.js')
/** Where programs are looked for: the Node of the tests comes first. */
const PATH = [path.dirname(process.execPath), process.env['PATH']].join(path.delimiter)
/** Words of commands that end their process themselves, make another one, or wait for the end of one. */
const OWN_PROCESS: readonly string[] = ['--detach', 'stop', 'version', '--version', '-V', '-v']
/** No wait of a test may be longer; each ends with its event. */
const PATIENCE_MS = 60_000

/** Variables that a process reads when it starts, or takes out of its own environment. */
const OWN_VARIABLES: readonly string[] = ['TMPDIR', 'NODE_OPTIONS', 'A2A_NODE_JOIN']

/**
 * Must a command line with these variables run in a process of its own? A `start` that is refused, or finds its node
 * running, need not.
 */
export function needsProcess(args: readonly string[], env: Readonly<Record<string, string>> = {}): boolean {
  return args.some((word) => OWN_PROCESS.includes(word)) || OWN_VARIABLES.some((name) => env[name] !== undefined)
}

/** What a finished command left. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A running node, in this process or in its own. */
export interface LocalNode {
  readonly name: string
  readonly home: string
  readonly info: NodeInfo
  readonly api: NodeApi
  /** The text that it wrote to stderr. */
  errors(): string
  /** Runs a command against it. */
  cli(args: readonly string[], input?: string): Promise<CommandResult>
  /** The same with --json, parsed. Fails when the exit code is not 0. */
  json<T = Record<string, unknown>>(args: readonly string[], input?: string): Promise<T>
  /** Resolves when it has ended. */
  readonly exited: Promise<{ readonly code: number | null }>
  /** Ends it in order (a process: by SIGTERM). */
  stop(): Promise<void>
}

/** A node in a process of its own. */
export interface TestNode extends LocalNode {
  readonly process: ChildProcess
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  kill(signal: NodeJS.Signals): void
}

/** How a node is started. */
export interface NodeOptions {
  readonly join?: string
  readonly home?: string
  readonly args?: readonly string[]
  /** undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Nodes of one test on a loopback network of their own. */
export interface TestMesh<N extends LocalNode = TestNode> {
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  /** Resolves when the node is ready. Fails with its stderr when it exits before. */
  start(name: string, options?: NodeOptions): Promise<N>
  /** A founder called `a` and members called by the other names, all seeing each other online. */
  meshOf(...names: readonly string[]): Promise<N[]>
  /** The same with options for every node. */
  meshWith(options: NodeOptions, ...names: readonly string[]): Promise<N[]>
  /** An own directory of the test. */
  dir(): Promise<string>
  /** Runs a command without any node of the test in mind. */
  run(
    args: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>>; readonly input?: string }
  ): Promise<CommandResult>
}

/** How a mesh starts one node, with the words of `start` and an environment. */
type StartNode<N> = (given: {
  readonly t: Teardown
  readonly name: string
  readonly home: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** The variables of `env` that the test gave. */
  readonly given: Readonly<Record<string, string | undefined>>
}) => Promise<N>
/** How a mesh runs a command. */
type RunCommand = (
  args: readonly string[],
  options: { readonly env: Readonly<Record<string, string>>; readonly input?: string }
) => Promise<CommandResult>

/**
 * Makes a loopback network of processes for one test; every process and directory is gone when the test ends. With
 * `commandsHere` commands run in this process where they can.
 */
export function testMesh(
  t: Teardown,
  { commandsHere = false }: { readonly commandsHere?: boolean } = {}
): Promise<TestMesh> {
  return meshBy(t, startProcess, commandsHere ? runHere : runProcess)
}

/**
 * The same with nodes and commands in this process: a quarter of the CPU time. They share the environment of this
 * process, and cannot be killed. `a2a-node stop` waits for the end of a process, so end a node by `stop()`.
 */
export function localMesh(t: Teardown): Promise<TestMesh<LocalNode>> {
  return meshBy(t, startHere, runHere)
}

async function meshBy<N extends LocalNode>(
  t: Teardown,
  startNode: StartNode<Omit<N, 'cli' | 'json'>>,
  run: RunCommand
): Promise<TestMesh<N>> {
  const root = await tempDir(t)
  const port = await freePort()
  const env = {
    A2A_NODE_NETWORK_KIND: 'local',
    A2A_NODE_LOCAL_PORT: String(port),
    // No packet leaves this machine.
    A2A_NODE_DISCOVERY_LAN: 'false',
    NO_COLOR: '1'
  }

  async function start(name: string, options: NodeOptions = {}): Promise<N> {
    const home = options.home ?? path.join(root, name)
    const join = options.join === undefined ? [] : ['--join', options.join]
    const args = ['--home', home, 'start', '--json', '--name', name, ...join, ...(options.args ?? [])]
    const given = options.env ?? {}
    const node = await startNode({ t, name, home, args, env: { ...process.env, PATH, ...env, ...given }, given })
    const cli: LocalNode['cli'] = (words, input) =>
      run(['--home', home, ...words], { env, ...(input === undefined ? {} : { input }) })
    const json = async <T>(words: readonly string[], input?: string): Promise<T> => {
      const result = await cli([...words, '--json'], input)
      if (result.code !== 0) throw new Error(`${words.join(' ')} exited with ${result.code}: ${result.stderr}`)
      return JSON.parse(result.stdout) as T
    }
    return { ...node, cli, json } as N
  }

  return {
    port,
    env,
    start,
    run: (args, options = {}) =>
      run(args, { env: { ...env, ...options.env }, ...(options.input === undefined ? {} : { input: options.input }) }),
    dir: () => tempDir(t),
    meshOf: (...names) => meshWith({}, ...names),
    meshWith
  }

  async function meshWith(options: NodeOptions, first = 'a', ...others: readonly string[]): Promise<N[]> {
    const founder = await start(first, options)
    const { code } = await founder.api.call('invite.create', { trust: 'mine', uses: Math.max(1, others.length) })
    const members = await Promise.all(others.map((name) => start(name, { ...options, join: code })))
    const all = [founder, ...members]
    await Promise.all(all.map((node) => untilOnline(node, others.length)))
    return all
  }
}

const startProcess: StartNode<Omit<TestNode, 'cli' | 'json'>> = async ({ t, name, home, args, env }) => {
  // By its own name, as users run it: its first line says how much memory its allocator keeps.
  const child = spawn(BIN, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = exitOf(child)
  t.teardown(async () => {
    // A stopped process cannot end.
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await exited
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const line = await Promise.race([
    firstLine(child),
    exited.then(({ code }) => Promise.reject(new Error(`${name} ended with ${code} before it was ready: ${errors}`)))
  ])
  return {
    name,
    home,
    info: JSON.parse(line) as NodeInfo,
    process: child,
    api: connect({ home }),
    exited,
    errors: () => errors,
    kill: (signal) => void child.kill(signal),
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    }
  }
}

const startHere: StartNode<Omit<LocalNode, 'cli' | 'json'>> = async ({ t, name, home, args, env, given }) => {
  setVariables(t, given)
  const { startedHere } = await import('./command-line.js')
  const { node, exited, errors } = await startedHere(args, env)
  t.teardown(() => node.close())
  return { name, home, info: node.info, api: connect({ home }), exited, errors, stop: () => node.close() }
}

/**
 * Sets variables of this process until the test ends: agents read them there. Settings are those of one node, and are
 * not set.
 */
function setVariables(t: Teardown, variables: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(variables)) {
    if (name.startsWith('A2A_NODE_')) continue
    const before = process.env[name]
    setVariable(name, value)
    t.teardown(() => setVariable(name, before))
  }
}

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}

/** A mesh whose nodes run in this process. */
export type LocalMesh = TestMesh<LocalNode>

/** A founder `a` and an admin `b`, who may invite and write. */
export async function twoAdmins<N extends LocalNode>(mesh: TestMesh<N>): Promise<[N, N]> {
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine', admin: true })
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  return [a, b]
}

/** Waits until a node sees so many other nodes online. */
export async function untilOnline(node: LocalNode, count: number): Promise<readonly PeerInfo[]> {
  const { peers } = await until(
    node.api,
    'peers.list',
    {},
    (now) => now.peers.filter((one) => one.status === 'online').length >= count
  )
  return peers
}

/** Waits until a node sees a peer (by name) in a state. */
export async function untilPeer(node: LocalNode, name: string, status: PeerInfo['status']): Promise<void> {
  await until(node.api, 'peers.list', { all: true }, (now) =>
    now.peers.some((one) => one.name === name && one.status === status)
  )
}

/** Waits until a node knows an agent: cards come a moment after the peer is online. */
export function untilAgent(node: LocalNode, address: string): Promise<void> {
  return untilTrue(
    async () => (await node.api.call('agents.list', {})).agents.some((one) => one.address === address),
    `${node.name} knows ${address}`
  )
}

/** Reads a watch until an item fits; that item. Fails after a minute, with the last item. */
export async function until<N extends WatchName>(
  api: NodeApi,
  name: N,
  params: Watches[N]['params'],
  fits: (item: Watches[N]['item']) => boolean
): Promise<Watches[N]['item']> {
  const abort = new AbortController()
  const patience = setTimeout(() => abort.abort(), PATIENCE_MS)
  let last: unknown
  try {
    for await (const item of api.watch(name, params, { signal: abort.signal })) {
      if (fits(item)) return item
      last = item
    }
  } finally {
    clearTimeout(patience)
    abort.abort()
  }
  throw new Error(`${name} never showed what was awaited, but at last ${JSON.stringify(last)?.slice(0, 500)}`)
}

/** Calls again and again until the result fits: for what no watch tells. Bounded by a minute. */
export async function untilTrue(
  check: () => Promise<boolean> | boolean,
  what: string,
  patienceMs = PATIENCE_MS
): Promise<void> {
  const end = Date.now() + patienceMs
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`never came true: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const runProcess: RunCommand = async (args, options) => {
  const child = spawn(process.execPath, [BIN, ...args], {
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe']
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const closed = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  return { code: await closed, stdout, stderr }
}

const runHere: RunCommand = async (args, options) => {
  if (options.input !== undefined || needsProcess(args, options.env)) return await runProcess(args, options)
  // Tests with nodes in processes do not need these modules.
  const { ranHere } = await import('./command-line.js')
  return await ranHere(args, { ...process.env, ...options.env })
}

function exitOf(child: ChildProcess): TestNode['exited'] {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
}

/** A UDP port that is free now, below those that client sockets get. */
export async function freePort(): Promise<number> {
  for (;;) {
    // `fetch` refuses 10080, and no port above it.
    const port = 10_100 + Math.floor(Math.random() * 20_000)
    const socket = dgram.createSocket('udp4')
    const isFree = await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false))
      socket.bind(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise<void>((resolve) => (isFree ? socket.close(() => resolve()) : resolve()))
    if (isFree) return port
  }
}
