import path from 'node:path'
import type { AgentDefinition, AgentFault } from '../../ports/agent-runtime.js'
import { createSchemaCompiler } from './compile-schema.js'
import { readAgentFile } from './read-agent-file.js'

/** What `agents check` says of one agent file. */
export interface AgentFileReport {
  readonly ok: boolean
  /** Absolute path. */
  readonly file: string
  /** null for a faulty file. Its `capabilities` carry their schemas. */
  readonly agent: AgentDefinition | null
  /** Ids of the capabilities, in the order of the file. */
  readonly capabilities: readonly string[]
  /** Keys above `a2a` that have no meaning to a node. */
  readonly ignored: readonly string[]
  /** Everything that is wrong, in order of lines. */
  readonly faults: readonly AgentFault[]
}

/** Checks one agent file without running anything of it. A relative path is taken from the current directory. Never rejects. */
export async function checkAgentFile(file: string): Promise<AgentFileReport> {
  const absolute = path.resolve(file)
  const read = await readAgentFile(absolute, createSchemaCompiler())
  if (!read.ok) return { ok: false, file: absolute, agent: null, capabilities: [], ignored: read.ignored, faults: read.faults }
  const { definition, ignored } = read
  return { ok: true, file: absolute, agent: definition, capabilities: definition.capabilities.map((one) => one.id), ignored, faults: [] }
}
