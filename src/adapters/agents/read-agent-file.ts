import fs from 'node:fs/promises'
import { messageOf } from '../../kit/errors.js'
import type { CompileSchema } from '../../kit/sign.js'
import { type AgentFile, type FaultyAgentFile, MAX_AGENT_FILE_BYTES, parseAgentFile, tooLong } from './agent-file.js'

/** An agent file with a text that changes whenever the agent has to be made anew. */
export type ReadAgentFile = (AgentFile | FaultyAgentFile) & { readonly text: string }

/**
 * Reads an agent file, and looks whether the module it names is there. Never rejects: what cannot be read is a fault.
 * `file` is absolute. At most 256 KiB are read.
 */
export async function readAgentFile(file: string, compileSchema: CompileSchema): Promise<ReadAgentFile> {
  const faulty = (line: number | null, reason: string, text = ''): ReadAgentFile => ({
    ok: false,
    ignored: [],
    faults: [{ file, line, reason }],
    text
  })
  let text: string
  try {
    text = await readBounded(file)
  } catch (error) {
    return faulty(null, unreadable(error))
  }
  const parsed = parseAgentFile(text, { file, compileSchema })
  if (!parsed.ok || parsed.runtime.type !== 'module') return { ...parsed, text }
  const module = parsed.runtime.path
  const stat = await fs.stat(module).catch(() => null)
  if (stat === null || !stat.isFile()) return faulty(parsed.lines.runtime, `a2a.runtime.path: there is no file ${module}`, text)
  // A changed module is a changed agent, though its file stays the same.
  return { ...parsed, text: `${text}\n${stat.mtimeMs} ${stat.size} ${stat.ino}` }
}

function unreadable(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it'
  return `cannot be read: ${messageOf(error)}`
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
