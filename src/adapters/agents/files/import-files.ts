import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { fileReason } from '../../../kit/file-reason.js'
import type { ImportStatus } from '../../../ports/imports.js'
import { createSchemaCompiler } from '../schemas/compile-schema.js'
import { STARTER_IDS } from '../starters/starters.js'
import { parseAgentFile } from './agent-file.js'
import { checkAgentDirectory } from './check-file.js'
import { readBounded } from './read-agent-file.js'
import { agentTextOf, isSubAgentFile, type SubAgentRuntime } from './sub-agent.js'

/** Most files of one import, and its deepest directory. */
const MAX_FILES = 1000
const MAX_DEPTH = 8
/** Directories that have no sub-agents. */
const OTHER_DIRECTORIES: ReadonlySet<string> = new Set(['node_modules', '.git'])

/** Options of {@link importAgentFiles}. */
export interface ImportOptions {
  /** Absolute path of a file, or of a directory that is read with its subdirectories. */
  readonly source: string
  /** Where the agent files go, absolute; made when it is not there. */
  readonly dir: string
  readonly runtime: SubAgentRuntime
  /** Other agents of the node, whose ids are taken. */
  readonly others: { readonly dirs: readonly string[]; readonly starters: boolean }
  /** Nothing is written. */
  readonly isDryRun: boolean
}

/** The result of one file. */
export interface ImportedFile {
  /** The sub-agent file. */
  readonly file: string
  /** `imported`: written, or to be written by a run that is not dry. */
  readonly status: ImportStatus
  /** '' for a file that is skipped or refused. */
  readonly id: string
  /** The agent file; null when there is none. */
  readonly target: string | null
  /** Why it is skipped or refused; null else. */
  readonly reason: string | null
  /** Line of the fault; null without one. */
  readonly line: number | null
  /** Keys of its front matter without a meaning to a node: tools and model of its client among them. */
  readonly ignored: readonly string[]
}

/**
 * Makes agent files of sub-agent files, see {@link agentTextOf}. No file is overwritten, and no id is given twice: such
 * a file is refused, and the others are imported.
 * @throws NodeError USAGE for a source that cannot be read; errors of the file system for the target
 */
export async function importAgentFiles(options: ImportOptions): Promise<readonly ImportedFile[]> {
  const { source, dir, others, isDryRun } = options
  const files = await sourcesOf(source)
  const taken = new Map<string, string>(others.starters ? STARTER_IDS.map((id) => [id, 'one of the starters']) : [])
  for (const place of new Set([dir, ...others.dirs]))
    for (const one of await checkAgentDirectory(place)) if (one.ok) taken.set(one.id, one.file)
  if (!isDryRun) await fs.mkdir(dir, { recursive: true, mode: 0o700 })
  const imported: ImportedFile[] = []
  const planned = new Map<string, string>()
  for (const file of files) {
    const one = await importOne(file, { taken, planned }, options)
    if (one.target !== null) taken.set(one.id, one.target)
    imported.push(one)
  }
  return imported
}

const NOTHING = { id: '', target: null, reason: null, line: null, ignored: [] } as const
const compileSchema = createSchemaCompiler()

interface ImportProgress {
  /** Files of the ids that are in use. */
  readonly taken: ReadonlyMap<string, string>
  /** Texts that a run that is not dry would have written by now. */
  readonly planned: Map<string, string>
}

async function importOne(
  file: string,
  { taken, planned }: ImportProgress,
  { dir, runtime, isDryRun }: ImportOptions
): Promise<ImportedFile> {
  const refused = (reason: string, line: number | null = null): ImportedFile => ({
    ...NOTHING,
    file,
    status: 'refused',
    reason,
    line
  })
  const text = await readBounded(file).catch((error: unknown) => ({ reason: fileReason(error) }))
  if (typeof text !== 'string') return refused(text.reason)
  const made = agentTextOf(text, file, runtime)
  if (made.kind === 'own')
    return {
      ...NOTHING,
      file,
      status: 'skipped',
      reason: 'it is an agent file: copy it, or name its directory in agents.dirs'
    }
  if (made.kind === 'skipped') return { ...NOTHING, file, status: 'skipped', reason: made.reason }
  if (made.kind === 'faulty') return refused(made.faults[0]?.reason ?? 'it cannot be read', made.faults[0]?.line)
  const target = path.join(dir, `${made.id}.md`)
  const parsed = parseAgentFile(made.text, { file: target, compileSchema })
  if (!parsed.ok) return refused(parsed.faults[0]?.reason ?? 'it cannot be read', parsed.faults[0]?.line)
  const rest = { ...NOTHING, file, id: made.id, target, ignored: made.unused }
  const before = planned.get(target) ?? (await fs.readFile(target, 'utf8').catch(() => null))
  if (before === made.text) return { ...rest, status: 'unchanged' }
  const isFree = !taken.has(made.id) && (isDryRun ? await isFreeName(target) : await wroteNew(target, made.text))
  if (!isFree) return refused(`the agent id ${made.id} is taken already: ${taken.get(made.id) ?? target}`)
  if (isDryRun) planned.set(target, made.text)
  return { ...rest, status: 'imported' }
}

/** Has nothing that name, not even a link to nowhere? */
async function isFreeName(file: string): Promise<boolean> {
  return (await fs.lstat(file).catch(() => null)) === null
}

/** Writes a new file; a failure leaves none. False: something has that name. */
async function wroteNew(file: string, text: string): Promise<boolean> {
  const handle = await fs.open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return null
    throw error
  })
  if (handle === null) return false
  try {
    await handle.writeFile(text)
    return true
  } catch (error) {
    await fs.rm(file, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

async function sourcesOf(source: string): Promise<readonly string[]> {
  try {
    if (!(await fs.stat(source)).isDirectory()) return [source]
    const found: string[] = []
    await walk(source, 0, found)
    return found
  } catch (error) {
    throw new NodeError('USAGE', `${source} cannot be read: ${fileReason(error)}`)
  }
}

/** Adds the Markdown files below a directory in the order of their names. Links are not followed. */
async function walk(dir: string, depth: number, found: string[]): Promise<void> {
  const entries = (await fs.readdir(dir, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const place = path.join(dir, entry.name)
    if (entry.isFile() && isSubAgentFile(entry.name)) found.push(place)
    else if (entry.isDirectory() && !OTHER_DIRECTORIES.has(entry.name) && depth < MAX_DEPTH)
      await walk(place, depth + 1, found)
    if (found.length > MAX_FILES)
      throw new NodeError('USAGE', `${dir} has more than ${MAX_FILES} files: import a directory below`)
  }
}
