import { AGENT_FORMAT, type AgentFormat } from './agent-file-schema.js'
import { buildAgent } from './build-agent.js'
import type { AgentFileReport } from './check-file.js'
import { readAgentFile } from './read-agent-file.js'
import type { AgentDeps } from './runtime-type.js'
import { createSchemaCompiler } from '../schemas/compile-schema.js'

/** Dependencies of {@link loadCheckedFiles}. */
export interface LoadDeps extends AgentDeps {
  /** Default: the format with every runtime. */
  readonly format?: AgentFormat
}

/** Programs that are loaded at once. */
const AT_ONCE = 4

/**
 * Loads the programs of checked agent files as a node does for its health checks, in processes of their own: code of
 * the files runs. A program that cannot be loaded makes the report of its file a faulty one. Never rejects.
 */
export async function loadCheckedFiles(
  reports: readonly AgentFileReport[],
  deps: LoadDeps
): Promise<readonly AgentFileReport[]> {
  const loaded = [...reports]
  const waiting = [...reports.keys()]
  const next = async (): Promise<void> => {
    for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
      const report = reports[at]
      if (report?.ok === true && report.importBy === undefined) loaded[at] = await loadReport(report, deps)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return loaded
}

async function loadReport(report: AgentFileReport, { format, ...deps }: LoadDeps): Promise<AgentFileReport> {
  const { file } = report
  const read = await readAgentFile(file, createSchemaCompiler(), { ...(format === undefined ? {} : { format }) })
  if (!read.ok || (format ?? AGENT_FORMAT).runtime(read.runtime.type)?.isLoadedByCheck !== true) return report
  const agent = buildAgent(read, deps, format)
  try {
    const found = await agent.check?.(new AbortController().signal)
    if (found === undefined || found.state === 'healthy') return report
    const fault = { file, line: read.lines.runtime, reason: `a2a.runtime: ${found.reason ?? 'it cannot be loaded'}` }
    return { ...report, ok: false, id: '', capabilities: [], faults: [fault], warnings: [] }
  } finally {
    await agent.close()
  }
}
