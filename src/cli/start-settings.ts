import path from 'node:path'
import type { ConfigFault } from '../config/candidate.js'
import { type LoadedConfig, loadConfig } from '../config/load.js'
import type { Config } from '../config/settings.js'
import { flagValue, readStartFlags } from '../config/start-flags.js'
import { REMEMBERED, type RememberedOption, type StartFlagTexts } from '../config/start-options.js'
import { NodeError } from '../kit/errors.js'
import type { CommandContext } from './context.js'
import { isForgotten, isSet, type Options, textOption, textsOption } from './options.js'
import { askLine } from './terminal/confirm.js'
import { readStdin } from './stdin.js'

const CODE_MAX_BYTES = 4096

/** The flags of one `start`, read once. */
export interface StartFlags {
  readonly name: string | null
  /** The invite code itself, never `-`. */
  readonly join: string | null
  /**
   * It is from the environment, which stays when the home is in the mesh: it counts only for a home that is in none.
   */
  readonly joinsOnce: boolean
  /** The node shall run in the background. */
  readonly isDetached: boolean
  /** How long a join may take, as it was typed; null: as the config says. */
  readonly timeout: string | null
  /** The flags that the next start uses again, as they were typed; directories are absolute. */
  readonly typed: StartFlagTexts
  /** Flags that were forgotten by `--no-<flag>`, such as `--http`. */
  readonly forgotten: readonly string[]
}

/** The settings of a start: typed flags before those of the last start, before environment, file and defaults. */
export interface StartSettings extends LoadedConfig {
  /** Flags of this start, which the next one uses again. */
  readonly texts: StartFlagTexts
  /** Flags of this command line. */
  readonly typed: StartFlagTexts
  /** Flags of the last start. */
  readonly last: StartFlagTexts
  /** Faults for which flags of the last start are not used. */
  readonly faults: readonly string[]
  /** Absolute directories of `--agents`. */
  readonly agentDirs: readonly string[]
}

/**
 * Reads the flags. A code of `-` is read from standard input. Without `--join` the code is A2A_NODE_JOIN, which is
 * removed from the environment so that no child gets it.
 * @throws NodeError USAGE
 */
export async function startFlags(options: Options): Promise<StartFlags> {
  const { A2A_NODE_JOIN: given } = process.env
  delete process.env['A2A_NODE_JOIN']
  const inArguments = textOption(options, 'join')
  const join = inArguments ?? (given === '' ? undefined : given)
  const code = join === '-' ? (await readCode()).trim() : join?.trim()
  if (code === '') throw new NodeError('USAGE', '--join got an empty code', { next: ['a2a-node start --join -'] })
  return {
    name: textOption(options, 'name') ?? null,
    join: code ?? null,
    joinsOnce: isSet(options, 'joinOnce') || (inArguments === undefined && code !== undefined),
    isDetached: isSet(options, 'detach'),
    timeout: textOption(options, 'timeout') ?? null,
    typed: typedTexts(options),
    forgotten: REMEMBERED.flatMap(({ flag }) => (isForgotten(options, keyOf(flag)) ? [flag] : []))
  }
}

/** Of a person one line is asked for; of a file or a program all is taken. */
async function readCode(): Promise<string> {
  return process.stdin.isTTY ? await askLine('invite code: ') : await readStdin(CODE_MAX_BYTES)
}

/** `--serve-bootstrap` becomes `serveBootstrap`. */
function keyOf(flag: string): string {
  return flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function typedTexts(options: Options): StartFlagTexts {
  const found = REMEMBERED.map(({ flag, isMany }): readonly [string, readonly string[]] => {
    const text = textOption(options, keyOf(flag))
    const dirs = isMany === true ? textsOption(options, keyOf(flag)).map((dir) => path.resolve(dir)) : []
    return [flag, text === undefined ? dirs : [text]]
  })
  return Object.fromEntries(found.filter(([, texts]) => texts.length > 0))
}

/**
 * Loads the settings under the flags of a start.
 * @throws NodeError USAGE for a wrong flag, CONFIG_INVALID for all else
 */
export async function startConfig(context: CommandContext, options: Options, joinMs?: number): Promise<Config> {
  return (await startSettings(context, options, joinMs)).config
}

/**
 * The same with the flags of this start and the last one; `joinMs`: its `--timeout`.
 * @throws NodeError USAGE for a wrong flag, CONFIG_INVALID for all else
 */
export async function startSettings(
  context: CommandContext,
  options: Options,
  joinMs?: number
): Promise<StartSettings> {
  const { configFile, startFlags: file } = context.paths()
  const { texts: last, faults } = await readStartFlags(file)
  const typed = typedTexts(options)
  const kept = Object.fromEntries(Object.entries(last).filter(([flag]) => !isDropped(flag, options)))
  const texts = { ...kept, ...typed }
  const name = textOption(options, 'name')
  const flags = REMEMBERED.flatMap((one) => candidateOf(one, { texts, typed }))
  if (name !== undefined) flags.push({ path: 'node.name', flag: '--name', value: name, isRemembered: false })
  if (joinMs !== undefined)
    flags.push({ path: 'network.joinTimeoutMs', flag: '--timeout', value: joinMs, isRemembered: false })
  try {
    checkMany(texts)
    const loaded = await loadConfig({ file: configFile, env: context.env, flags })
    checkBootstrap(loaded.config, options)
    const dropped = REMEMBERED.filter(({ flag }) => Object.hasOwn(last, flag) && !Object.hasOwn(texts, flag))
    // A dropped flag must not come back from the record of the mesh, which has its value too.
    const config = {
      ...loaded.config,
      given: new Set([...loaded.config.given, ...dropped.map(({ setting }) => setting)])
    }
    return { ...loaded, config, texts, typed, last, faults, agentDirs: texts['--agents'] ?? [] }
  } catch (error) {
    throw asUsage(error)
  }
}

/** A remembered flag goes by `--no-<flag>`; bootstrap nodes also go with the private network that they were for. */
function isDropped(flag: string, options: Options): boolean {
  const network = textOption(options, 'network')
  const isElsewhere = isForgotten(options, 'network') || (network !== undefined && network !== 'private')
  return isForgotten(options, keyOf(flag)) || (isElsewhere && (flag === '--bootstrap' || flag === '--serve-bootstrap'))
}

function candidateOf(
  one: RememberedOption,
  { texts, typed }: { readonly texts: StartFlagTexts; readonly typed: StartFlagTexts }
): { path: string; flag: string; value: unknown; isRemembered: boolean }[] {
  const given = texts[one.flag]
  // Directories are added to the setting.
  if (given === undefined || one.isMany === true) return []
  return [
    { path: one.setting, flag: one.flag, value: flagValue(one, given), isRemembered: !Object.hasOwn(typed, one.flag) }
  ]
}

/** More could not be remembered. */
function checkMany({ '--agents': dirs = [] }: StartFlagTexts): void {
  if (dirs.length <= 64) return
  throw new NodeError('USAGE', `--agents was given ${dirs.length} times, and 64 are allowed`, {
    next: ['a2a-node config path']
  })
}

/** A bootstrap list that the network kind ignores must not be accepted silently. */
function checkBootstrap({ network, given }: Config, options: Options): void {
  if (textOption(options, 'bootstrap') === undefined || !given.has('network.kind') || network.kind === 'private') return
  throw new NodeError('USAGE', `--bootstrap is for a private network, and this one is ${network.kind}`, {
    next: ['a2a-node start --network private --bootstrap <host:port>']
  })
}

/** A fault of a flag is wrong usage, not a bad config. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof NodeError) || error.code !== 'CONFIG_INVALID') return error
  const faults = (error.data as { faults?: readonly ConfigFault[] } | undefined)?.faults ?? []
  const wrong = faults.find((fault) => fault.where.startsWith('--'))
  if (wrong === undefined) return error
  const allowed = wrong.allowed === null ? '' : `: ${wrong.allowed}`
  return new NodeError('USAGE', `${wrong.where}: ${wrong.reason}${allowed}`, {
    next: ['a2a-node start --help'],
    cause: error
  })
}
