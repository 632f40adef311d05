import type { z } from 'zod'
import type { Clock } from '../../../kit/clock.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import type { LogLevel } from '../../../ports/telemetry.js'
import type { ProcessGroups } from '../process/process-groups.js'
import type { SharedDeps } from '../runtimes.js'
import type { Environment } from './environment.js'
import type { PathStep } from './front-matter.js'
import type { Runtime } from './hosted-agent.js'

/** The `runtime` of an agent file, checked. */
export interface RuntimeSpec {
  readonly type: string
}

/** A runtime as written in a file, unchecked. */
export type WrittenRuntime = Readonly<Record<string, unknown>>

/** Something wrong with a runtime as written. */
export interface RuntimeFault {
  /** The place, from `a2a.runtime` on. */
  readonly at: readonly PathStep[]
  /** For people, with the whole place. */
  readonly reason: string
}

/** A file without which an agent cannot run. */
export interface NeededFile {
  /** The key of `a2a.runtime` that names it. */
  readonly key: string
  /** Absolute. */
  readonly path: string
}

/** Definition, runtime and instructions of an agent file. */
export interface RuntimeFile<Spec extends RuntimeSpec = RuntimeSpec> {
  readonly definition: AgentDefinition
  readonly runtime: Spec
  /** The text of the file after its front matter. */
  readonly instructions: string
}

/** Where lines about agents go. Never throws. */
export type AgentLog = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void

/** Dependencies of all agents made from files. */
export interface AgentDeps extends SharedDeps {
  readonly groups: ProcessGroups
  readonly clock: Clock
  /** The node's own environment, from which PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME are taken. */
  readonly env: Environment
  readonly log: AgentLog
}

/** One way to run the agents of files. All of them stand in the table `RUNTIMES`. */
export interface RuntimeType<Spec extends RuntimeSpec = RuntimeSpec, Fields extends RuntimeSpec = RuntimeSpec> {
  /** The value of `a2a.runtime.type`. */
  readonly type: Spec['type']
  /** The keys of `a2a.runtime`, `type` among them. */
  readonly schema: z.ZodObject & z.ZodType<Fields>
  /** Makes the specification. Relative paths are taken from `base`, the directory of the file. */
  spec(fields: Fields, base: string): Spec
  /** Faults that the schema does not find. Absent: none. */
  faults?(written: WrittenRuntime): readonly RuntimeFault[]
  /** Files that must exist; the agent is made again when one changes. Absent: none. */
  files?(written: WrittenRuntime, base: string): readonly NeededFile[]
  /** Why tasks would fail on this machine as it is now, though the file is good. Absent: nothing is known. */
  check?(spec: Spec, env: Environment): readonly string[]
  /** The health check loads the program of the agent, so `agents check` does it too. Absent: it does not. */
  readonly isLoadedByCheck?: true
  /** Makes it for one agent. Nothing is started before the first task or health check. */
  create(file: RuntimeFile<Spec>, deps: AgentDeps): Runtime
}
