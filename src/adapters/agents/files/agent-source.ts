import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { fileReason } from '../../../kit/file-reason.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { AgentFault, AgentSource, HostedAgent } from '../../../ports/agent-runtime.js'
import type { AgentFile } from './agent-file.js'
import type { AgentFormat } from './agent-file-schema.js'
import { buildAgent } from './build-agent.js'
import { createSchemaCompiler } from '../schemas/compile-schema.js'
import type { Environment } from './environment.js'
import type { LocalAgent } from './hosted-agent.js'
import { ProcessGroups } from '../process/process-groups.js'
import type { SharedDeps } from '../runtimes.js'
import { readAgentFile, type ReadAgentOptions } from './read-agent-file.js'
import type { AgentDeps, AgentLog } from './runtime-type.js'
import { isSubAgentFile, type SubAgentRuntime } from './sub-agent.js'
import { killLeftovers } from '../process/run-records.js'
import { BUILT_IN, createStarters } from '../starters/starters.js'
import { WatchedDirectories } from './watched-directories.js'

/** Changes within this time are read together. */
const GATHER_MS = 25
/** Most agent files of one directory. */
const MAX_FILES = 1000

/** Options of {@link AgentFiles}. */
export interface AgentFilesOptions extends SharedDeps {
  /** Absolute directories with agent files (`*.md`, not below); on a duplicate id the earlier one wins. */
  readonly dirs: readonly string[]
  /** Absolute directories with sub-agent files, which come after `dirs`. Default: none. */
  readonly imports?: readonly ImportedDirectory[]
  /** Where process groups are recorded, `<home>/run`. */
  readonly runDir: string
  /** Directories that the starter agent `files` may read (config key `agents.grants`). */
  readonly grants: readonly string[]
  /** Directories that it may write (config key `agents.writeGrants`). Default: none. */
  readonly writeGrants?: readonly string[]
  /** Offer `host`, `text` and `files`; they come before all files. */
  readonly starters: boolean
  /** The process groups of the node; closed with the agents. Default: own ones of `runDir`. */
  readonly groups?: ProcessGroups
  readonly clock: Clock
  /** Default: the format with every runtime. */
  readonly format?: AgentFormat
  /** Default: one of its own. Given the node's, equal schemas share their checks. */
  readonly compileSchema?: CompileSchema
  /** The node's own environment. Default: this process's. */
  readonly env?: Environment
  /** Default: no log. */
  readonly log?: AgentLog
}

/** A directory of sub-agent files with their runtime. */
export interface ImportedDirectory extends SubAgentRuntime {
  readonly dir: string
}

/** State of one file. */
interface WatchedFile {
  readonly file: string
  /** Text of the last read; '' before the first. */
  text: string
  faults: readonly AgentFault[]
  /** The last version that could be used. */
  good: AgentFile | null
  /** The agent in service, and the version it was made of. */
  agent: { readonly hosted: LocalAgent; readonly made: AgentFile } | null
}

interface AgentSet {
  readonly agents: readonly HostedAgent[]
  readonly faults: readonly AgentFault[]
}

type OnChange = (agents: readonly HostedAgent[], faults: readonly AgentFault[]) => void

/** The agents of a node: the starters and the agents of files, which are read again whenever they change. */
export class AgentFiles implements AgentSource {
  readonly #options: AgentFilesOptions
  readonly #deps: AgentDeps & { readonly groups: ProcessGroups }
  readonly #compileSchema: CompileSchema
  readonly #starters: readonly LocalAgent[]
  #dirs: readonly string[]
  #imports: readonly ImportedDirectory[]
  #onChange: OnChange | null = null
  #entries = new Map<string, WatchedFile>()
  #current: AgentSet = { agents: [], faults: [] }
  readonly #retiring = new Set<LocalAgent>()
  #watcher: WatchedDirectories | null = null
  #gather: Timer | null = null
  /** Scans run one after the other. */
  #scanning: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | null = null

  constructor(options: AgentFilesOptions) {
    this.#options = options
    this.#dirs = options.dirs
    this.#imports = options.imports ?? []
    const {
      runDir,
      grants,
      writeGrants = [],
      starters,
      compileSchema,
      env = process.env,
      log = () => {},
      ...shared
    } = options
    this.#deps = { ...shared, groups: options.groups ?? new ProcessGroups(runDir), env, log }
    this.#compileSchema = compileSchema ?? createSchemaCompiler()
    this.#starters = starters ? createStarters({ grants, writeGrants, clock: options.clock }) : []
  }

  async load(): Promise<AgentSet> {
    for (const { processGroup, requestId } of await killLeftovers(this.#options.runDir)) {
      this.#deps.log('warn', 'ended an agent process that a dead node left behind', { processGroup, requestId })
    }
    await this.#scan(() => {})
    return this.#current
  }

  watch(onChange: OnChange): void {
    if (this.#watcher !== null || this.#closing !== null) return
    this.#onChange = onChange
    const dirs = [...this.#dirs, ...this.#imports.map(({ dir }) => dir)]
    const rescan = (): void => {
      this.#options.clock.clear(this.#gather)
      this.#gather = this.#options.clock.after(GATHER_MS, () => void this.#scan(onChange))
    }
    const onError = (error: unknown): void =>
      this.#deps.log('warn', 'agent files cannot be watched', { reason: messageOf(error) })
    this.#watcher = new WatchedDirectories({ dirs, clock: this.#options.clock, onChange: rescan, onError })
  }

  /** Serves the agents of these directories from now on. Agents that stay are not made again. */
  follow({ dirs, imports }: Required<Pick<AgentFilesOptions, 'dirs' | 'imports'>>): void {
    this.#dirs = dirs
    this.#imports = imports
    const [before, onChange] = [this.#watcher, this.#onChange]
    if (before === null || onChange === null) return
    this.#watcher = null
    this.#scanning = this.#scanning.then(() => before.close())
    this.watch(onChange)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#watcher?.close()
    this.#options.clock.clear(this.#gather)
    await this.#scanning
    const own = [...this.#entries.values()].flatMap((entry) => entry.agent?.hosted ?? [])
    await Promise.all([...this.#starters, ...own, ...this.#retiring].map((agent) => agent.close()))
    await this.#deps.groups.close()
  }

  #scan(onChange: OnChange): Promise<void> {
    const scan = this.#scanning
      .then(() => this.#scanNow(onChange))
      .catch((error: unknown) => {
        this.#deps.log('error', 'agent files could not be read', { reason: messageOf(error) })
      })
    this.#scanning = scan
    return scan
  }

  async #scanNow(onChange: OnChange): Promise<void> {
    if (this.#closing !== null) return
    const { files, faults: listFaults } = await listFiles(this.#dirs)
    const faults = [...listFaults]
    const entries = new Map<string, WatchedFile>()
    for (const file of files) entries.set(file, await this.#read(file))
    for (const imported of this.#imports) {
      const listed = await listFiles([imported.dir], isSubAgentFile)
      faults.push(...listed.faults)
      for (const file of listed.files) if (!entries.has(file)) entries.set(file, await this.#read(file, imported))
    }
    const before = this.#current
    const hostedBefore = [...this.#entries.values()].flatMap((entry) => entry.agent?.hosted ?? [])
    this.#entries = entries
    this.#current = this.#elect(faults)
    this.#tellFaults(before.faults)
    if (!isSame(before, this.#current)) onChange(this.#current.agents, this.#current.faults)
    for (const hosted of hostedBefore) if (!this.#current.agents.includes(hosted)) this.#retire(hosted)
  }

  /** Logs each fault once, when it appears. */
  #tellFaults(before: readonly AgentFault[]): void {
    const reported = new Set(before.map((fault) => JSON.stringify(fault)))
    for (const fault of this.#current.faults) {
      const { file, line, reason } = fault
      if (!reported.has(JSON.stringify(fault)))
        this.#deps.log('warn', 'an agent file cannot be used', { file, line, reason })
    }
  }

  async #read(file: string, subAgents?: SubAgentRuntime): Promise<WatchedFile> {
    const known = this.#entries.get(file) ?? { file, text: '', faults: [], good: null, agent: null }
    const read = await readAgentFile(file, this.#compileSchema, this.#readOptions(subAgents))
    if (read.text === known.text && read.text !== '') return known
    if (read.ok) return { ...known, text: read.text, faults: [], good: read }
    // A file without a fault is no agent any more, by the will of its author.
    return { ...known, text: read.text, faults: read.faults, good: read.faults.length === 0 ? null : known.good }
  }

  #readOptions(subAgents: SubAgentRuntime | undefined): ReadAgentOptions {
    const { format } = this.#options
    return { ...(format === undefined ? {} : { format }), ...(subAgents === undefined ? {} : { subAgents }) }
  }

  /**
   * Chooses the agents in service: starters first, then files in order. A duplicate id is a fault of the later file.
   */
  #elect(listFaults: readonly AgentFault[]): AgentSet {
    const faults = [...listFaults]
    const agents: HostedAgent[] = [...this.#starters]
    const taken = new Map(this.#starters.map(({ definition }) => [definition.id, definition.source]))
    for (const entry of this.#entries.values()) {
      faults.push(...entry.faults)
      const { good } = entry
      const holder = good === null ? undefined : taken.get(good.definition.id)
      if (good !== null && holder === undefined) {
        taken.set(good.definition.id, entry.file)
        agents.push(this.#serve(entry, good))
        continue
      }
      entry.agent = null
      if (good === null || holder === undefined) continue
      faults.push(takenTwice(good, entry.file, holder))
    }
    return { agents, faults }
  }

  #serve(entry: WatchedFile, good: AgentFile): LocalAgent {
    if (entry.agent?.made !== good)
      entry.agent = { hosted: buildAgent(good, this.#deps, this.#options.format), made: good }
    return entry.agent.hosted
  }

  /** Closes the agent when its running tasks have ended; earlier callers may still use it. */
  #retire(hosted: LocalAgent): void {
    this.#retiring.add(hosted)
    hosted.retire().then(
      () => this.#retiring.delete(hosted),
      (error: unknown) =>
        this.#deps.log('error', 'an agent could not be closed', {
          agent: hosted.definition.id,
          reason: messageOf(error)
        })
    )
  }
}

/** The fault of a file whose agent id another file, or a starter, has already. */
export function takenTwice({ definition, lines }: AgentFile, file: string, holder: string): AgentFault {
  const first = holder === BUILT_IN ? 'the built-in starter agent' : holder
  const reason = `the agent id ${definition.id} is used twice: by ${first}, which stays in service, and by ${file}`
  return { file, line: lines.name, reason }
}

/**
 * The files of directories whose names may be those of agents, in their order; a directory that cannot be read is a
 * fault.
 */
export async function listFiles(
  dirs: readonly string[],
  isAgent = (name: string): boolean => name.endsWith('.md') && !name.startsWith('.')
): Promise<{ files: readonly string[]; faults: readonly AgentFault[] }> {
  const files = new Set<string>()
  const faults: AgentFault[] = []
  for (const dir of dirs) {
    try {
      const names = (await fs.readdir(dir)).filter(isAgent).sort()
      if (names.length > MAX_FILES)
        faults.push({ file: dir, line: null, reason: `more than ${MAX_FILES} agent files; the rest is left out` })
      for (const name of names.slice(0, MAX_FILES)) files.add(path.resolve(dir, name))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const known =
        code === 'ENOENT'
          ? 'there is no such directory; its agents come with it'
          : code === 'ENOTDIR'
            ? 'it is not a directory'
            : null
      const reason = known ?? `the directory cannot be read: ${fileReason(error)}`
      faults.push({ file: dir, line: null, reason })
    }
  }
  return { files: [...files], faults }
}

function isSame(before: AgentSet, after: AgentSet): boolean {
  const sameAgents =
    before.agents.length === after.agents.length && before.agents.every((agent, i) => agent === after.agents[i])
  return sameAgents && JSON.stringify(before.faults) === JSON.stringify(after.faults)
}
