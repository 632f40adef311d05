import path from 'node:path'
import type { ConfigFault } from '../config/candidate.js'
import { loadConfig, type LoadOptions } from '../config/load.js'
import type { Config } from '../config/settings.js'
import { NodeError } from '../kit/errors.js'
import type { CommandContext } from './context.js'
import { isSet, type Options, textOption, textsOption } from './options.js'
import { askLine } from './terminal/confirm.js'
import { readStdin } from './stdin.js'

const CODE_MAX_BYTES = 4096

/** The flags of `start`, read once. */
export interface StartFlags {
  readonly name: string | null
  /** The invite code itself, never `-`. */
  readonly join: string | null
  /** It is from the environment, which stays when the home is in the mesh: it counts only for a home that is in none. */
  readonly joinsOnce: boolean
  /** Absolute. */
  readonly agentDirs: readonly string[]
  /** `--http` as it was typed. */
  readonly http: string | null
  /** The network flags as they were typed, by flag. */
  readonly network: Readonly<Record<string, string>>
}

const NETWORK_FLAGS = { network: '--network', bootstrap: '--bootstrap', serveBootstrap: '--serve-bootstrap' } as const

/**
 * Reads the flags. A code of `-` is read from standard input. Without `--join` the code is A2A_NODE_JOIN, which is removed from the
 * environment so that no child gets it.
 * @throws NodeError USAGE
 */
export async function startFlags(options: Options): Promise<StartFlags> {
  const { A2A_NODE_JOIN: given } = process.env
  delete process.env['A2A_NODE_JOIN']
  const inArguments = textOption(options, 'join')
  const join = inArguments ?? (given === '' ? undefined : given)
  const code = join === '-' ? (await readCode()).trim() : join?.trim()
  if (code === '') throw new NodeError('USAGE', '--join got an empty code', { next: ['a2a-node start --join -'] })
  const agentDirs = textsOption(options, 'agents').map((dir) => path.resolve(dir))
  const typed = Object.entries(NETWORK_FLAGS).map(([key, name]) => [name, textOption(options, key)])
  const network = Object.fromEntries(typed.filter(([, text]) => text !== undefined)) as Record<string, string>
  const [name, http] = [textOption(options, 'name') ?? null, textOption(options, 'http') ?? null]
  return {
    name,
    join: code ?? null,
    joinsOnce: isSet(options, 'joinOnce') || (inArguments === undefined && code !== undefined),
    agentDirs,
    http,
    network
  }
}

/** Of a person one line is asked for; of a file or a program all is taken. */
async function readCode(): Promise<string> {
  return process.stdin.isTTY ? await askLine('invite code: ') : await readStdin(CODE_MAX_BYTES)
}

/** Loads the settings under the flags of `start`; `joinMs`: its `--timeout`. @throws NodeError USAGE for a wrong flag, CONFIG_INVALID for all else */
export async function startConfig(context: CommandContext, options: Options, joinMs?: number): Promise<Config> {
  const flags: NonNullable<LoadOptions['flags']> = [
    ...flag('node.name', '--name', textOption(options, 'name')),
    ...flag('network.kind', '--network', textOption(options, 'network')),
    ...flag('network.bootstrap', '--bootstrap', textOption(options, 'bootstrap')?.split(',')),
    ...flag('network.serveBootstrap', '--serve-bootstrap', textOption(options, 'serveBootstrap')),
    ...flag('http.listen', '--http', textOption(options, 'http')),
    ...flag('network.joinTimeoutMs', '--timeout', joinMs)
  ]
  try {
    const { config } = await loadConfig({ file: context.paths().configFile, env: context.env, flags })
    checkBootstrap(config, options)
    return config
  } catch (error) {
    throw asUsage(error)
  }
}

/** A bootstrap list that the network kind ignores must not be accepted silently. */
function checkBootstrap({ network, given }: Config, options: Options): void {
  if (textOption(options, 'bootstrap') === undefined || !given.has('network.kind') || network.kind === 'private') return
  throw new NodeError('USAGE', `--bootstrap is for a private network, and this one is ${network.kind}`, {
    next: ['a2a-node start --network private --bootstrap <host:port>']
  })
}

function flag(name: string, text: string, value: unknown): { path: string; flag: string; value: unknown }[] {
  return value === undefined ? [] : [{ path: name, flag: text, value }]
}

/** A fault of a flag is wrong usage, not a bad config. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof NodeError) || error.code !== 'CONFIG_INVALID') return error
  const faults = (error.data as { faults?: readonly ConfigFault[] } | undefined)?.faults ?? []
  const wrong = faults.find((fault) => fault.where.startsWith('--'))
  if (wrong === undefined) return error
  const allowed = wrong.allowed === null ? '' : `: ${wrong.allowed}`
  return new NodeError('USAGE', `${wrong.where}: ${wrong.reason}${allowed}`, { next: ['a2a-node start --help'], cause: error })
}
