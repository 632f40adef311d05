import os from 'node:os'
import path from 'node:path'
import { NodeError } from '../kit/errors.js'
import { type Candidate, checkValue, type ConfigFault, faultText } from './candidate.js'
import { entryFaults } from './entry-values.js'
import { readEnv } from './env.js'
import { readConfigFile } from './file.js'
import { GUARDRAILS, type GuardrailSettings, patternFaults } from './guardrails.js'
import { onlyProvider } from './agent-imports.js'
import { allSettings, type Config, type ConfigSource, isFileOnly, type NamedSetting } from './settings.js'

/** Sources of the settings of a start. */
export interface LoadOptions {
  /** Absolute path of the YAML file; need not exist. */
  readonly file: string
  /**
   * Values of flags by `section.key`, in the form of the file; errors name the flag. `isRemembered`: of the last start.
   */
  readonly flags?: readonly {
    readonly path: string
    readonly flag: string
    readonly value: unknown
    readonly isRemembered?: boolean
  }[]
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** The settings and where each came from. */
export interface LoadedConfig {
  readonly config: Config
  /** By `section.key`: the source, and for a given value the place (flag, variable, file and line). */
  readonly origins: ReadonlyMap<string, { readonly source: ConfigSource; readonly where: string | null }>
  /**
   * Place of the value in the environment or the file that a remembered flag goes before, by `section.key`; none where
   * both are equal.
   */
  readonly hidden: ReadonlyMap<string, string>
}

/**
 * Loads the settings: flags before environment before file before defaults.
 * @throws NodeError CONFIG_INVALID with every fault in `data.faults`; NO_PERMISSION when the file cannot be read.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const env = readEnv(options.env ?? process.env)
  const file = await readConfigFile(options.file)
  const flags = (options.flags ?? []).map(
    ({ path: name, value, flag, isRemembered }): Candidate =>
      isRemembered === true
        ? { path: name, value, source: 'remembered', where: `${flag}, remembered from the last start`, line: null }
        : { path: name, value, source: 'flag', where: flag, line: null }
  )
  const loader = new Loader(options.file)
  // Lower layers are checked too: a fault that a flag hides today bites tomorrow.
  const chosen = new Map([...file.candidates, ...env.candidates.toReversed(), ...flags].map((one) => [one.path, one]))
  for (const one of [...file.candidates, ...env.candidates, ...flags]) loader.check(one)
  await loader.checkPatterns(file.candidates)
  const faults = [...file.faults, ...env.faults, ...loader.faults]
  if (faults.length === 0) faults.push(...loader.crossFaults(chosen))
  const [first] = faults
  if (first === undefined)
    return { ...loader.build(chosen), hidden: hiddenBy(flags, [...file.candidates, ...env.candidates.toReversed()]) }
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ''
  throw new NodeError('CONFIG_INVALID', `${faultText(first)}${more}`, { data: { faults } })
}

function hiddenBy(flags: readonly Candidate[], below: readonly Candidate[]): ReadonlyMap<string, string> {
  const found = flags.flatMap((flag): readonly (readonly [string, string])[] => {
    const other = flag.source === 'remembered' ? below.findLast((one) => one.path === flag.path) : undefined
    const isOther = other !== undefined && String(other.value) !== String(flag.value)
    return isOther ? [[flag.path, other.where]] : []
  })
  return new Map(found)
}

function heartbeatFaults(
  { swarm: { heartbeatMs, leaseMs } }: Config,
  chosen: ReadonlyMap<string, Candidate>
): ConfigFault[] {
  if (heartbeatMs * 2 <= leaseMs) return []
  const where = chosen.get('swarm.heartbeatMs') ?? chosen.get('swarm.leaseMs')
  const reason = `${heartbeatMs} ms is more than half of swarm.leaseMs (${leaseMs} ms)`
  const allowed = `at most ${Math.floor(leaseMs / 2)}`
  return [
    {
      where: where?.where ?? 'defaults',
      line: where?.line ?? null,
      key: 'swarm.heartbeatMs',
      reason,
      allowed,
      nearest: []
    }
  ]
}

/** Sub-agents of a language model need one: their own, or the only one of the node. */
function importFaults({ agents, llm: { providers } }: Config, chosen: ReadonlyMap<string, Candidate>): ConfigFault[] {
  const candidate = chosen.get('agents.imports')
  return Object.entries(agents.imports).flatMap(([name, { runtime, model }]) => {
    if (runtime !== 'llm' || (model === null && onlyProvider(providers) !== null)) return []
    const [provider = ''] = model?.split('/') ?? []
    if (model !== null && Object.hasOwn(providers, provider)) return []
    const known = Object.keys(providers)
    const reason =
      model === null
        ? 'has no model, and llm.providers is not one alone'
        : `names the provider ${provider}, which is not in llm.providers`
    const line = candidate?.lineAt?.([name]) ?? null
    const where = candidate?.where.replace(/:\d+$/, line === null ? '$&' : `:${line}`) ?? 'defaults'
    return [
      {
        where,
        line,
        key: `agents.imports.${name}`,
        reason,
        allowed: `a provider, or provider/model, of: ${known.join(', ')}`,
        nearest: []
      }
    ]
  })
}

/** The setting that has patterns. */
const PATTERNS = 'a2a.guardrails'

/** Checks candidates and builds the configuration of the chosen ones. */
class Loader {
  readonly faults: ConfigFault[] = []
  readonly #settings = new Map(allSettings().map((one) => [one.path, one]))
  readonly #values = new Map<Candidate, unknown>()
  readonly #fileDir: string

  constructor(file: string) {
    this.#fileDir = path.dirname(file)
  }

  check(candidate: Candidate): void {
    const named = this.#settings.get(candidate.path)
    if (named === undefined) return
    if (isFileOnly(named.setting.form)) return this.#checkMapping(candidate, named)
    const result = checkValue(candidate.value, named)
    const reason = result.ok ? this.#placeFault(candidate, named) : result.reason
    if (reason !== null) this.#fault(candidate, named, reason)
    else if (result.ok)
      this.#values.set(
        candidate,
        named.setting.form === 'directories' ? this.#absolute(candidate, result.value as string[]) : result.value
      )
  }

  /** Each fault at its own line, and without the values: some are secrets. */
  #checkMapping(candidate: Candidate, named: NamedSetting): void {
    const result = named.setting.schema.safeParse(candidate.value)
    if (result.success) return void this.#values.set(candidate, result.data)
    this.#faultsIn(candidate, entryFaults(result.error))
  }

  #faultsIn(candidate: Candidate, faults: ReturnType<typeof entryFaults>): void {
    for (const { path: at, reason } of faults) {
      const line = candidate.lineAt?.(at) ?? candidate.line
      const where = line === null ? candidate.where : candidate.where.replace(/:\d+$/, `:${line}`)
      this.faults.push({
        where,
        line,
        key: [candidate.path, ...at.map(String)].join('.'),
        reason,
        allowed: null,
        nearest: []
      })
    }
  }

  /** Patterns are looked at by a package that is loaded only for them. */
  async checkPatterns(candidates: readonly Candidate[]): Promise<void> {
    for (const one of candidates) {
      const settings = one.path === PATTERNS ? (this.#values.get(one) as GuardrailSettings | undefined) : undefined
      this.#faultsIn(one, await patternFaults(settings ?? GUARDRAILS))
    }
  }

  /** Rules between settings. */
  crossFaults(chosen: ReadonlyMap<string, Candidate>): ConfigFault[] {
    const { config } = this.build(chosen)
    return [...heartbeatFaults(config, chosen), ...importFaults(config, chosen)]
  }

  build(chosen: ReadonlyMap<string, Candidate>): Omit<LoadedConfig, 'hidden'> {
    const config: Record<string, Record<string, unknown>> = {}
    const origins = new Map<string, { source: ConfigSource; where: string | null }>()
    for (const { path: name, section, key, setting } of this.#settings.values()) {
      const one = chosen.get(name)
      config[section] = { ...config[section], [key]: one === undefined ? setting.fallback : this.#values.get(one) }
      origins.set(name, { source: one?.source ?? 'default', where: one?.where ?? null })
    }
    // The table that made the type is the table that was walked here.
    const complete = { ...config, given: new Set(chosen.keys()) } as unknown as Config
    return { config: complete, origins }
  }

  #placeFault(candidate: Candidate, { setting }: NamedSetting): string | null {
    if (setting.form !== 'directories' || candidate.source !== 'env' || !Array.isArray(candidate.value)) return null
    const bad = candidate.value.find((dir) => !path.isAbsolute(expand(String(dir))))
    return bad === undefined ? null : `${JSON.stringify(bad)} is not absolute`
  }

  #absolute(candidate: Candidate, dirs: readonly string[]): string[] {
    // Only a flag may mean the current directory: a cloned repository must not define what runs.
    const base = candidate.source === 'flag' ? process.cwd() : this.#fileDir
    return dirs.map((dir) => path.resolve(base, expand(dir)))
  }

  #fault(candidate: Candidate, named: NamedSetting, reason: string): void {
    this.faults.push({
      where: candidate.where,
      line: candidate.line,
      key: named.path,
      reason,
      allowed: named.setting.allowed,
      nearest: []
    })
  }
}

/** A directory of a config file: `~/...` is below the user's home, a relative one below `base`. */
export function configDirectory(dir: string, base: string): string {
  return path.resolve(base, expand(dir))
}

function expand(dir: string): string {
  return dir === '~' || dir.startsWith('~/') ? path.join(os.homedir(), dir.slice(1)) : dir
}
