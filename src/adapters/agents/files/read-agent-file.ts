import fs from 'node:fs/promises'
import { fileReason } from '../../../kit/file-reason.js'
import { shown } from '../../../kit/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { AgentFault } from '../../../ports/agent-runtime.js'
import type { AgentFormat } from './agent-file-schema.js'
import {
  type AgentFile,
  type FaultyAgentFile,
  inOrder,
  MAX_AGENT_FILE_BYTES,
  parseAgentFile,
  tooLong
} from './agent-file.js'
import { agentTextOf, type SubAgentRuntime } from './sub-agent.js'

/** An agent file with a text that changes whenever the agent must be made again. */
export type ReadAgentFile = (AgentFile | FaultyAgentFile) & { readonly text: string }

/** Settings of {@link readAgentFile}. */
export interface ReadAgentOptions {
  /** Default: the format with every runtime. */
  readonly format?: AgentFormat
  /** The runtime of a sub-agent file, without an `a2a` block. Default: such a file is a fault. */
  readonly subAgents?: SubAgentRuntime
}

/**
 * Reads an agent file, and checks that the files it names exist. Never rejects: an unreadable file is a fault. A file
 * that is no sub-agent where one is expected gives neither an agent nor a fault. `file` is absolute. At most 256 KiB
 * are read.
 */
export async function readAgentFile(
  file: string,
  compileSchema: CompileSchema,
  options: ReadAgentOptions = {}
): Promise<ReadAgentFile> {
  const { format, subAgents } = options
  let text: string
  try {
    text = await readBounded(file)
  } catch (error) {
    return { ok: false, ignored: [], faults: [{ file, line: null, reason: fileReason(error) }], files: [], text: '' }
  }
  const made = subAgents === undefined ? null : agentTextOf(text, file, subAgents)
  const own = text
  // Another runtime makes another agent, or other faults, of the same text.
  if (subAgents !== undefined) text += `\n${JSON.stringify(subAgents)}`
  if (made?.kind === 'faulty')
    return { ok: false, ignored: [], faults: made.faults.map((fault) => ({ file, ...fault })), files: [], text }
  // Other files lie beside sub-agents too: they are no faults.
  if (made?.kind === 'skipped') return { ok: false, ignored: [], faults: [], files: [], text }
  const parsed = parseAgentFile(made?.kind === 'agent' ? made.text : own, {
    file,
    compileSchema,
    ...(format === undefined ? {} : { format })
  })
  const { files, ignored } = parsed
  const missing: AgentFault[] = []
  for (const { path, key, line } of files) {
    const stat = await fs.stat(path).catch(() => null)
    // A changed file that it names is a changed agent, though its own file stays the same.
    if (stat?.isFile() === true) text += `\n${stat.mtimeMs} ${stat.size} ${stat.ino}`
    else missing.push({ file, line, reason: shown(`a2a.runtime.${key}: there is no file ${path}`, 512) })
  }
  if (missing.length === 0) return { ...parsed, text }
  return { ok: false, ignored, faults: inOrder([...(parsed.ok ? [] : parsed.faults), ...missing]), files, text }
}

/** The text of an agent file of at most 256 KiB. @throws Error with the reason */
export async function readBounded(file: string): Promise<string> {
  const handle = await fs.open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new Error('it is not a file')
    if (stat.size > MAX_AGENT_FILE_BYTES) throw new Error(tooLong().reason)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}
