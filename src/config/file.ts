import { constants, open } from 'node:fs/promises'
import type { Document, Node } from 'yaml'
import { NodeError } from '../kit/errors.js'
import { fileReason } from '../kit/file-reason.js'
import { nearest } from '../kit/text.js'
import { yamlReason } from '../kit/yaml-reason.js'
import { type Candidate, type ConfigFault, faultText } from './candidate.js'
import { SETTINGS, type SettingTable } from './settings.js'

/** Bytes of the config file. */
export const MAX_CONFIG_BYTES = 262_144

/** Settings and faults of a config file. */
export interface FileValues {
  readonly candidates: readonly Candidate[]
  readonly faults: readonly ConfigFault[]
}

/**
 * Reads the YAML settings; a missing file has none. Unknown sections and keys are faults with their line.
 * @throws NodeError CONFIG_INVALID unless it is a YAML mapping; NO_PERMISSION when it cannot be read
 */
export async function readConfigFile(file: string): Promise<FileValues> {
  const text = await readText(file)
  if (text === null) return { candidates: [], faults: [] }
  return parseConfigText(text, file)
}

async function readText(file: string): Promise<string | null> {
  try {
    return await textOfFile(file)
  } catch (error) {
    if (error instanceof NodeError) throw error
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    if (code === 'EACCES' || code === 'EPERM')
      throw new NodeError('NO_PERMISSION', `may not read the config file ${file}`, { cause: error })
    throw invalid(file, null, `cannot be read: ${fileReason(error)}`)
  }
}

async function textOfFile(file: string): Promise<string> {
  // Opening a pipe without a writer would wait.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile())
      throw invalid(file, null, `cannot be read: it is ${stats.isDirectory() ? 'a directory' : 'no regular file'}`)
    if (stats.size > MAX_CONFIG_BYTES) throw invalid(file, null, `larger than ${MAX_CONFIG_BYTES} bytes`)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

/** Takes the text of a config file apart. @throws NodeError CONFIG_INVALID when it is no YAML mapping. */
export async function parseConfigText(text: string, file: string): Promise<FileValues> {
  // Loaded only when there is a file: it costs more than the rest of a start's parsing.
  const yaml = await import('yaml')
  const lines = new yaml.LineCounter()
  const doc = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const error = doc.errors[0]
  if (error !== undefined) throw invalid(file, lines.linePos(error.pos[0]).line, yamlReason(error.code))
  // A place in a mapping is that of its key: the value may begin lines below.
  const lineOf = (node: unknown, [step, ...rest]: readonly PropertyKey[]): number | null => {
    if (step === undefined) return null
    if (yaml.isSeq(node)) return lineOf(node.items[Number(step)], rest) ?? startOf(node.items[Number(step)])
    if (!yaml.isMap(node)) return null
    const pair = node.items.find(({ key }) => String(yaml.isScalar(key) ? key.value : key) === String(step))
    return pair === undefined ? null : (lineOf(pair.value, rest) ?? startOf(pair.key))
  }
  const startOf = (node: unknown): number | null => {
    const at = (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0]
    return at === undefined ? null : lines.linePos(at).line
  }
  const entries = (map: unknown): ConfigEntry[] | null => {
    if (map === null || (yaml.isScalar(map) && map.value === null)) return []
    if (!yaml.isMap(map)) return null
    return map.items.map(({ key, value }) => {
      const line = lines.linePos((key as { range?: [number] | null } | null)?.range?.[0] ?? 0).line
      const lineAt = (path: readonly PropertyKey[]): number => lineOf(value, path) ?? line
      return {
        name: String(yaml.isScalar(key) ? key.value : key),
        line,
        node: value,
        value: plainValue(value, doc),
        lineAt
      }
    })
  }
  const sections = entries(doc.contents)
  if (sections === null) throw invalid(file, 1, 'not a mapping of sections')
  const reader = new SectionReader(file)
  for (const section of sections) reader.section(section, entries(section.node))
  return reader
}

/** One key of a mapping with its line and value. */
interface ConfigEntry {
  readonly name: string
  readonly line: number
  readonly node: unknown
  readonly value: unknown
  readonly lineAt: (path: readonly PropertyKey[]) => number
}

function plainValue(node: unknown, doc: Document): unknown {
  try {
    // No aliases: a few lines of them could grow without bound.
    return node === null ? null : (node as Node).toJS(doc, { maxAliasCount: 0 })
  } catch {
    return 'an alias'
  }
}

/** A fault of the file as a whole, or of a line of it. */
function invalid(file: string, line: number | null, reason: string): NodeError {
  const where = line === null ? file : `${file}:${line}`
  const fault: ConfigFault = { where, line, key: '', reason, allowed: null, nearest: [] }
  return new NodeError('CONFIG_INVALID', faultText(fault), { data: { faults: [fault] } })
}

/** Collects the values and faults of one file. */
class SectionReader implements FileValues {
  readonly candidates: Candidate[] = []
  readonly faults: ConfigFault[] = []
  readonly #table: SettingTable = SETTINGS
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  /** Takes one section; `entries` is null when it is no mapping. */
  section({ name, line }: ConfigEntry, entries: readonly ConfigEntry[] | null): void {
    const keys = Object.hasOwn(this.#table, name) ? Object.keys(this.#table[name] ?? {}) : null
    if (keys === null) {
      const names = Object.keys(this.#table)
      this.#fault({
        line,
        key: name,
        reason: 'no such section',
        allowed: names.join(', '),
        nearest: nearest(name, names)
      })
    } else if (entries === null) {
      this.#fault({
        line,
        key: name,
        reason: 'is a section and holds keys',
        allowed: `a mapping of ${keys.join(', ')}`,
        nearest: []
      })
    } else for (const entry of entries) this.#entry(name, keys, entry)
  }

  #entry(section: string, keys: readonly string[], { name, line, value, lineAt }: ConfigEntry): void {
    const path = `${section}.${name}`
    if (keys.includes(name))
      this.candidates.push({ path, value, source: 'file', where: `${this.#file}:${line}`, line, lineAt })
    else {
      const near = nearest(name, keys).map((one) => `${section}.${one}`)
      this.#fault({ line, key: path, reason: 'no such key', allowed: keys.join(', '), nearest: near })
    }
  }

  #fault(fault: Omit<ConfigFault, 'where'>): void {
    this.faults.push({ ...fault, where: `${this.#file}:${fault.line ?? 1}` })
  }
}
