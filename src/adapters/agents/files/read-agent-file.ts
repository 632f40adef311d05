import fs from 'node:fs/promises'
import { fileReason } from '../../../kit/file-reason.js'
import { shown } from '../../../kit/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { AgentFault } from '../../../ports/agent-runtime.js'
import type { AgentFormat } from './agent-file-schema.js'
import { type AgentFile, type FaultyAgentFile, inOrder, MAX_AGENT_FILE_BYTES, parseAgentFile, tooLong } from './agent-file.js'

/** An agent file with a text that changes whenever the agent must be made again. */
export type ReadAgentFile = (AgentFile | FaultyAgentFile) & { readonly text: string }

/**
 * Reads an agent file, and checks that the files it names exist. Never rejects: an unreadable file is a fault. `file` is absolute. At most
 * 256 KiB are read.
 */
export async function readAgentFile(file: string, compileSchema: CompileSchema, format?: AgentFormat): Promise<ReadAgentFile> {
  let text: string
  try {
    text = await readBounded(file)
  } catch (error) {
    return { ok: false, ignored: [], faults: [{ file, line: null, reason: fileReason(error) }], files: [], text: '' }
  }
  const parsed = parseAgentFile(text, { file, compileSchema, ...(format === undefined ? {} : { format }) })
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

async function readBounded(file: string): Promise<string> {
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
