import { allSettings, type Config, type NamedSetting } from '../config/settings.js'
import type { Clock } from '../kit/clock.js'
import { asNodeError } from '../kit/errors.js'
import type { Problem, ReloadInfo } from '../ports/node-api.js'
import type { Telemetry } from '../ports/telemetry.js'

/** Dependencies of {@link ConfigReload}. */
export interface ConfigReloadDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly telemetry: Telemetry
  /** Absent: changes of the config are not noticed. */
  readonly source?: ReloadSource | undefined
}

/** Where the config of a running node comes from. */
export interface ReloadSource {
  /** Loads the config as the next start would. */
  load(): Promise<Config>
  /** The command that makes the node reload it; null when only a restart does. */
  readonly reloadCommand: string | null
}

/**
 * The config in force of a running node. A reload changes the settings that a part of the node registered; others need
 * a restart.
 */
export class ConfigReload {
  readonly #deps: ConfigReloadDeps
  readonly #live = new Map<string, (config: Config) => void>()
  #config: Config
  #last: ReloadInfo | null = null
  /** Result of the last look: settings that differ from those in force, or the fault for which there are none. */
  #found: { readonly fault: string | null; readonly changed: readonly string[] } = { fault: null, changed: [] }
  /** Reloads run one after the other. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(config: Config, deps: ConfigReloadDeps) {
    this.#config = config
    this.#deps = deps
  }

  /** The settings in force. */
  get config(): Config {
    return this.#config
  }

  /** The last reload; null before the first. */
  get last(): ReloadInfo | null {
    return this.#last
  }

  /**
   * Registers settings (`section.key`) that take effect while the node runs. `apply` is called once a reload for them.
   */
  live(paths: readonly string[], apply: (config: Config) => void): void {
    for (const path of paths) this.#live.set(path, apply)
  }

  /**
   * Loads the config anew and applies it. Never rejects: with a bad config the old one stays in force, and the report
   * says so.
   */
  reload(load: () => Promise<Config>): Promise<ReloadInfo> {
    const turn = this.#turn.then(async () => await this.#reload(load))
    this.#turn = turn
    return turn
  }

  /** Compares the config with that in force, for {@link ConfigReload.problems}. Never rejects. */
  async look(): Promise<void> {
    const { source } = this.#deps
    if (source === undefined) return
    this.#found = await source.load().then(
      (next) => ({ fault: null, changed: this.#differences(next).map(({ path }) => path) }),
      (error: unknown) => ({ fault: asNodeError(error).message, changed: [] })
    )
  }

  /** The present problems for `status`: a config that was not loaded, or that differs from the one in force. */
  problems(): readonly Problem[] {
    const reason = this.#last?.error ?? null
    const { fault, changed } = this.#found
    const code = 'CONFIG_INVALID'
    const next = 'a2a-node config check'
    if (reason !== null)
      return [{ code, message: `the config was not reloaded, and the old one is in force: ${reason}`, next }]
    if (fault !== null)
      return [{ code, message: `the next start would fail, since the config has a fault: ${fault}`, next }]
    if (changed.length === 0) return []
    const reloadCommand = this.#deps.source?.reloadCommand ?? null
    const isLive = reloadCommand !== null && changed.every((path) => this.#live.has(path))
    const words = changed.length === 1 ? 'this setting of the config is' : 'these settings of the config are'
    return [
      {
        code: 'CONFIG_CHANGED',
        message: `${words} not in force yet: ${changed.join(', ')}; ${isLive ? 'reload the config' : 'restart the node'}`,
        next: isLive ? reloadCommand : 'a2a-node stop && a2a-node start'
      }
    ]
  }

  async #reload(load: () => Promise<Config>): Promise<ReloadInfo> {
    const at = new Date(this.#deps.clock.now()).toISOString()
    try {
      this.#last = { at, error: null, ...this.#take(await load()) }
      const { applied, needRestart } = this.#last
      this.#deps.telemetry.log(needRestart.length === 0 ? 'info' : 'warn', 'the config was reloaded', {
        applied: applied.join(', '),
        needRestart: needRestart.join(', ')
      })
    } catch (error) {
      const reason = asNodeError(error).message
      this.#last = { at, error: reason, applied: [], needRestart: this.#last?.needRestart ?? [] }
      this.#deps.telemetry.log('error', 'the config was not reloaded, and the old one is in force', { reason })
    }
    return this.#last
  }

  #differences(next: Config): readonly NamedSetting[] {
    return allSettings().filter(({ section, key }) => textOf(this.#config, section, key) !== textOf(next, section, key))
  }

  #take(next: Config): Pick<ReloadInfo, 'applied' | 'needRestart'> {
    const changed = this.#differences(next)
    const applied = changed.filter(({ path }) => this.#live.has(path))
    const values = { ...this.#config } as unknown as Record<string, Record<string, unknown>>
    for (const { section, key } of applied) values[section] = { ...values[section], [key]: valueOf(next, section, key) }
    this.#config = values as unknown as Config
    for (const apply of new Set(applied.map(({ path }) => this.#live.get(path)))) apply?.(this.#config)
    const rest = changed.filter((one) => !applied.includes(one))
    return { applied: applied.map(({ path }) => path), needRestart: rest.map(({ path }) => path) }
  }
}

function valueOf(config: Config, section: string, key: string): unknown {
  return (config as unknown as Record<string, Record<string, unknown>>)[section]?.[key]
}

function textOf(config: Config, section: string, key: string): string {
  return JSON.stringify(valueOf(config, section, key)) ?? ''
}
