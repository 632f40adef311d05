import { existsSync } from 'node:fs'
import net from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { tuneHeap } from '../heap.js'
import type { RunningNode, StartOptions } from '../../compose/compose.js'
import { listenAddress } from '../../config/public-url.js'
import type { Config } from '../../config/settings.js'
import { readStartFlags } from '../../config/start-flags.js'
import { pidOfSocket } from '../../adapters/control/answer-limit.js'
import { tierFromText } from '../../adapters/control/terms.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { NodeApi, NodeInfo } from '../../ports/node-api.js'
import { bannerLines } from '../terminal/banner.js'
import type { Action, CommandContext } from '../context.js'
import { reportProgress, reportReady, startDetached } from '../detach.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'
import { LogFile } from '../log-file.js'
import { durationOption, isSet, type Options, textOption } from '../options.js'
import type { Output } from '../terminal/output.js'
import { takeUncaughtErrors } from '../package-errors.js'
import { takePackageOutput } from '../terminal/package-output.js'
import { ANSWER_MS, awaitRunning, runningNode } from '../running.js'
import { longerStep } from '../timeouts.js'
import { stopSignals, type StopSignals } from '../signals.js'
import { installation } from '../start/install.js'
import { keepAfterClients, LastClient } from '../start/last-client.js'
import { leaveFirst } from './home/leave.js'
import { memoryNotes, noFlag, toRemember, withForgetting, withTypedFlags } from '../start/memory.js'
import { startConfig, startFlags, type StartFlags, type StartSettings, startSettings } from '../start-settings.js'

/** Milliseconds for remaining handles before the process exits. */
const LEAVE_MS = 1000

/** Starts a node in this process; the composition root's. */
type StartNode = (options: StartOptions) => Promise<RunningNode>

/** `start`: runs the node until a signal or `stop`; prints the one that runs already. */
export const start: Action = async (context, _args, options) => {
  tuneHeap()
  try {
    const code = await startAny(context, options, async (given) => {
      const handed = { packageOutput: takePackageOutput(), ...takeUncaughtErrors() }
      return (await import('../../compose/compose.js')).startNode({ ...given, ...handed })
    })
    leave(code)
    return code
  } catch (error) {
    const known = asNodeError(error)
    if (isSet(options, 'reportReady')) await reportReady({ error: known.toBody() })
    leave(EXIT_CODES[known.code])
    throw error
  }
}

/** Ends the process although something of the node may still hold it. */
function leave(exitCode: number): void {
  setTimeout(() => process.exit(exitCode), LEAVE_MS).unref()
}

/** `start` with the way to start a node passed in. */
export async function startAny(context: CommandContext, options: Options, startNode: StartNode): Promise<number> {
  const flags = await startFlags(options)
  try {
    return await startWith({ context, options, startNode }, flags)
  } catch (error) {
    throw withTypedFlags(error, flags)
  }
}

async function startWith({ context, options, startNode }: Start, flags: StartFlags): Promise<number> {
  const { socket } = context.paths()
  checkLeave(options)
  const waitMs = durationOption(options, 'timeout') ?? ANSWER_MS
  const running = await runningNode(socket, waitMs).catch((error: unknown) =>
    Promise.reject(hungNode(error, context, waitMs))
  )
  if (running !== null) {
    if (textOption(options, 'untilUnused') === undefined) keepAfterClients(context.paths())
    return await printRunning(context, running, { flags, reports: isSet(options, 'reportReady') })
  }
  if (flags.join !== null && !flags.joinsOnce) await leaveFirst(context, flags.join, isSet(options, 'leave'))
  const settings = await startSettings(context, options, durationOption(options, 'timeout'))
  for (const line of memoryNotes(settings, flags)) context.output.note(line)
  if (textOption(options, 'untilUnused') === 'config' && !settings.config.mcp.startNode) throw notForClients()
  // An error of a detached node names the remembered flag already.
  if (isSet(options, 'detach')) return await printDetached(context, await startDetached(context, flags), flags)
  try {
    return await startHere({ context, options, startNode }, settings, flags)
  } catch (error) {
    throw withForgetting(error, settings)
  }
}

/** An MCP client may not start this node. */
function notForClients(): NodeError {
  return new NodeError('FORBIDDEN', 'no node runs, and mcp.startNode of the config is off', {
    next: ['a2a-node start --detach']
  })
}

/** @throws NodeError USAGE for `--leave` without a typed code */
function checkLeave(options: Options): void {
  if (!isSet(options, 'leave') || textOption(options, 'join') !== undefined) return
  throw new NodeError('USAGE', '--leave belongs to --join', {
    next: ['a2a-node start --join - --leave', 'a2a-node leave']
  })
}

/** A start of this process. */
interface Start {
  readonly context: CommandContext
  readonly options: Options
  readonly startNode: StartNode
}

async function startHere(
  { context, options, startNode }: Start,
  settings: StartSettings,
  flags: StartFlags
): Promise<number> {
  const reports = isSet(options, 'reportReady')
  const log = reports ? LogFile.ofOutput(context.paths().logFile) : LogFile.ofStderr()
  const reloads = new Reloads(context, options, log)
  const signals = stopSignals(reports ? () => reloads.hangup() : undefined)
  const lastClient = textOption(options, 'untilUnused') === undefined ? null : new LastClient(context.paths())
  try {
    const onProgress = (line: string): void => {
      context.output.note(line)
      if (reports) reportProgress(line)
    }
    const configSource = { load: () => reloads.next(), reloadCommand: reports ? `kill -HUP ${process.pid}` : null }
    const logFault = (): ReturnType<LogFile['fault']> => log?.fault() ?? null
    const onMcpClients = (count: number): void => lastClient?.counted(count)
    const given = { ...startOptions(context, settings, flags), onProgress, configSource, logFault, onMcpClients }
    const node = await untilStarted(startNode(given), signals)
    reloads.serve(node)
    return await runNode(context, node, {
      name: flags.name,
      signals,
      lastClient,
      limitMs: settings.config.node.shutdownTimeoutMs,
      reports
    })
  } catch (error) {
    if (error instanceof StoppedEarly) return error.exitCode
    if (!(error instanceof NodeError) || (error.code !== 'ALREADY_RUNNING' && error.code !== 'STORE_LOCKED'))
      throw error
    // Another start of the same home may be a moment ahead of this one.
    const waitMs = durationOption(options, 'timeout')
    return await printRunning(context, await awaitRunning(context.paths().socket, error, waitMs), { flags, reports })
  } finally {
    lastClient?.release()
    signals.release()
  }
}

function startOptions(context: CommandContext, settings: StartSettings, flags: StartFlags): StartOptions {
  const { config, agentDirs, faults } = settings
  const { name, join, joinsOnce } = flags
  return {
    config,
    home: context.paths(),
    name,
    join,
    joinsOnce,
    extraAgentDirs: agentDirs,
    memory: { texts: toRemember(settings, flags), faults }
  }
}

/**
 * A node that holds its socket and does not answer ends by force only: says which process it is. Less than 2 s prove
 * nothing.
 */
function hungNode(error: unknown, context: CommandContext, waitMs: number): unknown {
  if (!(error instanceof NodeError) || error.code !== 'ALREADY_RUNNING') return error
  const { socket, run } = context.paths()
  const pid = pidOfSocket(socket, run)
  if (pid === null) return error
  const next =
    waitMs < ANSWER_MS
      ? ['a2a-node status', longerStep({ name: '--timeout', givenMs: waitMs }, ANSWER_MS)]
      : [`kill -9 ${pid}`]
  return new NodeError(error.code, `${error.message} (pid ${pid})`, { next, cause: error })
}

/**
 * Loads the config for a running node. Reloads log and config of a detached one at each SIGHUP; one that comes before
 * the node is up waits for it.
 */
class Reloads {
  readonly #context: CommandContext
  readonly #options: Options
  readonly #log: LogFile | null
  #node: Pick<RunningNode, 'reload'> | null = null
  #isWanted = false
  #hadFile: boolean

  constructor(context: CommandContext, options: Options, log: LogFile | null) {
    this.#log = log
    this.#context = context
    this.#options = options
    this.#hadFile = existsSync(context.paths().configFile)
  }

  hangup(): void {
    this.#log?.reopen()
    if (this.#node === null) this.#isWanted = true
    else void this.#node.reload(async () => await this.#load())
  }

  serve(node: Pick<RunningNode, 'reload'>): void {
    this.#node = node
    if (this.#isWanted) void node.reload(async () => await this.#load())
  }

  /** The config of the next start with the same flags. @throws NodeError CONFIG_INVALID, USAGE */
  next(): Promise<Config> {
    return startConfig(this.#context, this.#options, durationOption(this.#options, 'timeout'))
  }

  async #load(): Promise<Config> {
    const { configFile } = this.#context.paths()
    const isThere = existsSync(configFile)
    // The defaults would be in force while a program replaces it.
    if (this.#hadFile && !isThere)
      throw new NodeError('CONFIG_INVALID', `${configFile} is gone: bring it back, or make it an empty file`)
    const config = await this.next()
    this.#hadFile = isThere
    return config
  }
}

/** A signal came before the node was up. */
class StoppedEarly extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super('stopped before the node was up')
    this.exitCode = exitCode
  }
}

async function untilStarted(starting: Promise<RunningNode>, signals: StopSignals): Promise<RunningNode> {
  const first = await Promise.race([starting, signals.first])
  if (typeof first !== 'number') return first
  // A node that comes up later is closed then; the process does not wait for a join of up to a minute.
  starting.then(async (node) => await node.close()).catch(() => {})
  throw new StoppedEarly(first)
}

async function runNode(
  context: CommandContext,
  node: RunningNode,
  how: {
    name: string | null
    signals: StopSignals
    lastClient: LastClient | null
    limitMs: number
    reports: boolean
  }
): Promise<number> {
  const { output } = context
  const { info } = node
  const tier = tierFromText(info.node.tier) ?? 3
  const api = node.apiFor({
    kind: 'operator',
    name: 'operator',
    tier,
    sandboxId: null,
    scopes: ['read', 'send', 'admin']
  })
  if (output.json) output.object('start@1', info)
  else {
    await printBanner(context, api, { isLogged: true })
    output.print('Ctrl-C stops the node. Log follows.')
  }
  noteName(output, info, how.name)
  if (how.reports) await reportReady({ ready: info })
  how.lastClient?.begin()
  const unused = how.lastClient?.gone.then(() => EXIT.ok) ?? new Promise<never>(() => {})
  const end = await Promise.race([node.stopped.then((error) => ({ error })), how.signals.first, unused])
  if (typeof end !== 'number') {
    if (end.error !== null) output.error(end.error.toBody())
    return end.error === null ? EXIT.ok : EXIT_CODES[end.error.code]
  }
  output.note(`stopping (at most ${formatDuration(how.limitMs)}; again to quit at once) ...`)
  if (!(await closedWithin(node, how.limitMs)))
    output.note(`not closed within ${formatDuration(how.limitMs)}: leaving all the same`)
  return end
}

/** A node may be called otherwise than it asked for: it has its name already, or another member came first. */
function noteName(output: Output, { node }: NodeInfo, wanted: string | null): void {
  if (wanted === null || wanted === node.name) return
  const hint = output.hint(`a2a-node peers rename ${node.id.slice(0, 8)} <name>`)
  output.note(
    `this node is called ${shown(node.name)}, not ${shown(wanted)}; an admin of the mesh may rename it: ${hint}`
  )
}

async function closedWithin(node: RunningNode, limitMs: number): Promise<boolean> {
  const limit = new AbortController()
  const expired = delay(limitMs, false, { signal: limit.signal }).catch(() => false)
  const isClosed = await Promise.race([node.close().then(() => true), expired])
  limit.abort()
  return isClosed
}

async function printBanner(context: CommandContext, api: NodeApi, { isLogged }: { isLogged: boolean }): Promise<void> {
  const [info, { peers }] = await Promise.all([api.call('node.status', {}), api.call('peers.list', {})])
  const parts = {
    info,
    peers,
    store: context.paths().home,
    userHome: context.env['HOME'],
    isLogged,
    installed: await installation()
  }
  for (const line of bannerLines(context.output, parts)) context.output.print(line)
}

async function printRunning(
  context: CommandContext,
  info: NodeInfo,
  how: { flags: StartFlags; reports: boolean }
): Promise<number> {
  if (how.flags.join !== null && !how.flags.joinsOnce)
    throw new NodeError(
      'ALREADY_IN_MESH',
      `the node of this home runs already (pid ${info.pid}) and is in the mesh ${info.mesh.name}: stop it first`,
      { next: ['a2a-node stop', 'a2a-node start --join - --leave'] }
    )
  if (how.reports) await reportReady({ ready: info })
  await noteUnapplied(context, how.flags, info)
  noteName(context.output, info, how.flags.name)
  if (context.output.json) context.output.object('start@1', info)
  else {
    await printBanner(context, context.api(), { isLogged: false })
    context.output.print(`It runs already (pid ${info.pid}). Stop it with: ${context.output.hint('a2a-node stop')}`)
  }
  return EXIT.ok
}

/** Warns of options that the running node does not have: a script must not rely on them. */
async function noteUnapplied(context: CommandContext, { typed, forgotten }: StartFlags, info: NodeInfo): Promise<void> {
  const { output } = context
  const { texts } = await readStartFlags(context.paths().startFlags)
  const [[network], [http = null]] = [typed['--network'] ?? [], typed['--http'] ?? []]
  const kind = network === undefined ? null : (await context.api().call('node.status', {})).network
  const isApplied = (flag: string): boolean =>
    (flag === '--network' && network === kind) ||
    (flag === '--http' && isServed(http, info)) ||
    isDeepStrictEqual(typed[flag], texts[flag])
  const unapplied = [
    ...Object.keys(typed).filter((flag) => !isApplied(flag)),
    ...forgotten.filter((flag) => Object.hasOwn(texts, flag) && !Object.hasOwn(typed, flag)).map(noFlag)
  ]
  if (unapplied.length === 0) return
  output.note(
    `${unapplied.join(', ')} ${unapplied.length === 1 ? 'is' : 'are'} not applied: the node runs already; stop it, then start it again`
  )
  output.note(`  try: ${output.hint('a2a-node stop')}`)
}

/** Does the node serve HTTP as it was asked for? Any port is as good as 0. Host names are not compared. */
function isServed(asked: string | null, { http }: NodeInfo): boolean {
  if (asked === null) return true
  const address = listenAddress(asked)
  if (http === null || address === null) return false
  const { host, port } = address
  const bound = new URL(http)
  const isThere =
    net.isIP(host) === 0 || new URL(`http://${net.isIPv6(host) ? `[${host}]` : host}`).hostname === bound.hostname
  return isThere && (port === 0 || String(port) === (bound.port === '' ? '80' : bound.port))
}

async function printDetached(context: CommandContext, info: NodeInfo, { name }: StartFlags): Promise<number> {
  noteName(context.output, info, name)
  if (context.output.json) context.output.object('start@1', info)
  else {
    await printBanner(context, context.api(), { isLogged: false }).catch((error: unknown) => {
      throw endedAtOnce(error, context.paths().logFile)
    })
    context.output.print(
      `Runs in the background (pid ${info.pid}), log in ${context.paths().logFile}. Stop it with: ${context.output.hint('a2a-node stop')}`
    )
  }
  return EXIT.ok
}

/** A node may end before its banner, for example when its first link reports that it was revoked. */
function endedAtOnce(error: unknown, logFile: string): unknown {
  if (!(error instanceof NodeError) || error.code !== 'NODE_NOT_RUNNING') return error
  const next = [`tail ${shellWord(logFile)}`]
  return new NodeError('NODE_NOT_RUNNING', `the node ended right after its start; its log says why: ${logFile}`, {
    next,
    cause: error
  })
}
