import path from 'node:path'
import { sandboxFault } from '../../../domain/card/sandbox.js'
import { shellWord } from '../../../kit/text.js'
import type { AgentFault } from '../../../ports/agent-runtime.js'
import type { AgentFile } from './agent-file.js'
import { createSchemaCompiler } from '../schemas/compile-schema.js'
import { AGENT_FORMAT, type AgentFormat } from './agent-file-schema.js'
import { listFiles, takenTwice } from './agent-source.js'
import { STARTER_IDS } from '../starters/starters.js'
import { readAgentFile, type ReadAgentFile, readBounded } from './read-agent-file.js'
import { agentTextOf, type SubAgentRuntime } from './sub-agent.js'

/** Report of `agents check` on one agent file. */
export interface AgentFileReport {
  readonly ok: boolean
  /** Absolute path. */
  readonly file: string
  /** Id of the agent; '' for a faulty file. */
  readonly id: string
  /** Ids of the capabilities, in the order of the file. */
  readonly capabilities: readonly string[]
  /** Keys above `a2a` that have no meaning to a node. */
  readonly ignored: readonly string[]
  /** Everything that is wrong, in order of lines. */
  readonly faults: readonly AgentFault[]
  /** Reasons why its tasks would fail on this machine now, though the file is valid. */
  readonly warnings: readonly AgentFault[]
  /** For a sub-agent file of another client: the commands that make an agent of it. Absent: it is an agent file. */
  readonly importBy?: readonly string[]
}

/** Any runtime shows whether a file is a sub-agent. */
const ANY_RUNTIME: SubAgentRuntime = { runtime: 'command', model: null, tier: null, command: null }

/**
 * The report of a faulty file that is a sub-agent file of another client, which needs no `a2a` block: without faults,
 * with the commands that import it. Any other report is returned as it is. Never rejects.
 */
export async function asSubAgent(report: AgentFileReport): Promise<AgentFileReport> {
  const { ok, file } = report
  const text = ok ? null : await readBounded(file).catch(() => null)
  const made = text === null ? null : agentTextOf(text, file, ANY_RUNTIME)
  if (made?.kind !== 'agent') return report
  const importBy = ['command', 'llm'].map((name) => `a2a-node agents import ${shellWord(file)} --runtime ${name}`)
  return { ok: true, file, id: made.id, capabilities: [], ignored: [], faults: [], warnings: [], importBy }
}

/**
 * Checks one agent file without running anything of it. A relative path is taken from the current directory. `sandbox`:
 * the one that its node is certified for; null: none. Never rejects.
 */
export async function checkAgentFile(
  file: string,
  sandbox: string | null = null,
  format = AGENT_FORMAT
): Promise<AgentFileReport> {
  const absolute = path.resolve(file)
  return reportOf(await readAgentFile(absolute, createSchemaCompiler(), { format }), { absolute, sandbox, format })
}

/**
 * Checks every agent file of a directory as {@link checkAgentFile} does, in the order in which a node takes them; an id
 * that an earlier file has is a fault. A directory that cannot be read gives one report with that fault. Never rejects.
 */
export async function checkAgentDirectory(
  dir: string,
  sandbox: string | null = null,
  format = AGENT_FORMAT
): Promise<readonly AgentFileReport[]> {
  const { files, faults } = await listFiles([path.resolve(dir)])
  const compileSchema = createSchemaCompiler()
  const holders = new Map<string, string>()
  const reports: AgentFileReport[] = faults.map((fault) => faulty(fault.file, [], [fault]))
  for (const file of files) {
    const read = await readAgentFile(file, compileSchema, { format })
    const holder = read.ok ? holders.get(read.definition.id) : undefined
    if (read.ok && holder === undefined) holders.set(read.definition.id, file)
    reports.push(
      read.ok && holder !== undefined
        ? faulty(file, read.ignored, [takenTwice(read, file, holder)])
        : reportOf(read, { absolute: file, sandbox, format })
    )
  }
  return reports
}

interface FileToReport {
  readonly absolute: string
  readonly sandbox: string | null
  readonly format: AgentFormat
}

function reportOf(read: ReadAgentFile, { absolute, sandbox, format }: FileToReport): AgentFileReport {
  if (!read.ok) return faulty(absolute, read.ignored, read.faults)
  const { definition, ignored, lines } = read
  const misplaced = sandboxFault(definition.sandboxId, sandbox)
  if (misplaced !== null)
    return faulty(absolute, ignored, [{ file: absolute, line: lines.sandbox, reason: `a2a.sandbox: ${misplaced}` }])
  const capabilities = definition.capabilities.map((one) => one.id)
  const unfit = format.runtime(read.runtime.type)?.check?.(read.runtime, process.env) ?? []
  const warnings = [
    ...starterWarnings(read, absolute),
    ...unfit.map((reason) => ({ file: absolute, line: lines.runtime, reason }))
  ]
  return { ok: true, file: absolute, id: definition.id, capabilities, ignored, faults: [], warnings }
}

/** Starters depend on the config of the node, which a file does not contain. */
function starterWarnings({ definition: { id }, lines }: AgentFile, file: string): readonly AgentFault[] {
  if (!(STARTER_IDS as readonly string[]).includes(id)) return []
  return [{ file, line: lines.name, reason: `the starter agent ${id} goes before it, unless agents.starters is false` }]
}

function faulty(file: string, ignored: readonly string[], faults: readonly AgentFault[]): AgentFileReport {
  return { ok: false, file, id: '', capabilities: [], ignored, faults, warnings: [] }
}
