import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { NodeError } from '../../kit/errors.js'
import type { CodingClient } from './places.js'

/** The members of an object of a file. */
export type EntryValues = Readonly<Record<string, unknown>>

/** The program that a client starts: a server that speaks MCP over its standard input and output. */
export interface ServerEntry {
  readonly type?: 'stdio'
  readonly command: string
  readonly args: readonly string[]
}

/** Paths from which an entry is built. */
export interface EntrySources {
  /** The Node.js that runs; absolute. */
  readonly execPath: string
  /** The script `a2a-node`; absolute. */
  readonly bin: string
  /** The node's directory where one was named; absolute. */
  readonly home: string | null
  /** Options of `mcp serve` with the rights of the client, and whether it may start a node. */
  readonly caller: readonly string[]
  /** Name the command `a2a-node` only, to be found in the PATH of the client. */
  readonly isPortable: boolean
}

/**
 * How a file stands to the entry that is wanted: `outdated` is ours and starts something else, `foreign` is of another
 * program.
 */
export type EntryState = 'absent' | 'same' | 'outdated' | 'foreign'

/** Reads and edits the servers of one file; every byte that is none of the entry's stays. */
export interface ServerFormat {
  /**
   * The entry of a name; undefined when there is none.
   * @throws NodeError CONFIG_INVALID for a text that is not understood
   */
  find(text: string, name: string): unknown
  /**
   * The text with the entry added; what is there under its name is brought up to date when it is ours, else replaced.
   */
  put(text: string, name: string, entry: ServerEntry): string
  /** The text without the entry, also without what {@link put} had made around it. */
  remove(text: string, name: string): string
}

// A name that every client accepts, and TOML as a bare key.
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const PROGRAM = /^a2a-node(?:\.js|\.cmd|\.exe)?$/i

/** The name of a server as it was typed. @throws NodeError USAGE */
export function serverName(text: string): string {
  if (NAME.test(text)) return text
  const allowed = '1 to 64 letters, digits, underscores and hyphens, a letter or digit first'
  throw new NodeError('USAGE', `--server-name takes ${allowed}, not ${JSON.stringify(text)}`)
}

/**
 * The entry for a client. A program with a window has no PATH of a shell, so it gets absolute paths of Node.js and the
 * script unless `isPortable`.
 */
export function serverEntry(
  { isTyped }: Pick<CodingClient, 'isTyped'>,
  { execPath, bin, caller, home, isPortable }: EntrySources
): ServerEntry {
  const words = ['mcp', 'serve', ...caller, ...(home === null ? [] : ['--home', home])]
  const start = isPortable ? { command: 'a2a-node', args: words } : { command: execPath, args: [bin, ...words] }
  return isTyped ? { type: 'stdio', ...start } : start
}

/**
 * The path of Node.js that survives a Homebrew upgrade. `<prefix>/opt/<formula>` leads to the current version; the
 * directory of one version is removed with it (docs.brew.sh/FAQ). Any other path is returned as it is.
 */
export function stableProgram(execPath: string, realpath: (file: string) => string | null): string {
  const stable = execPath.replace(/\/Cellar\/([^/]+)\/[^/]+\//, '/opt/$1/')
  return stable !== execPath && realpath(stable) === execPath ? stable : execPath
}

/**
 * Compares an existing entry with the wanted one. Further keys in an entry of ours are the user's, and no difference.
 */
export function stateOf(found: unknown, wanted: ServerEntry): EntryState {
  if (found === undefined) return 'absent'
  if (!isOurs(found)) return 'foreign'
  const values = found as EntryValues
  return Object.entries(wanted).every(([key, value]) => isDeepStrictEqual(values[key], value)) ? 'same' : 'outdated'
}

/** Does an entry of ours connect to the same node, whatever rights it gives its client, or lets it start? */
export function isSameButRights(found: unknown, wanted: ServerEntry): boolean {
  const args = (found as { args?: unknown } | undefined)?.args
  if (!Array.isArray(args) || !args.includes('--as')) return false
  const plain = { ...wanted, args: withoutRights(wanted.args) }
  return stateOf({ ...(found as EntryValues), args: withoutRights(args) }, plain) === 'same'
}

/** The word of an entry whose client starts no node. */
export const NO_START = '--no-start'
const RIGHTS: ReadonlySet<unknown> = new Set(['--tier', '--sandbox', '--agents'])

function withoutRights<T>(words: readonly T[]): T[] {
  return words.filter((word, i) => word !== NO_START && !RIGHTS.has(word) && !(i > 0 && RIGHTS.has(words[i - 1])))
}

/** Warnings for a person before relying on an entry. `install`: the command that installs the program for good. */
export function warningsOf({ command, args }: ServerEntry, install: string): readonly string[] {
  // npm empties that cache.
  const isCached = [command, ...args].some((word) => /[\\/]_npx[\\/].*[\\/]a2a-node\.js$/.test(word))
  return isCached
    ? [`the entry names a copy in the cache of npx, which may go away: ${install}, then connect again`]
    : []
}

/** Does an entry start `a2a-node mcp serve`, from any path, for any home? */
function isOurs(found: unknown): boolean {
  const { command, args } = (found ?? {}) as { command?: unknown; args?: unknown }
  if (typeof command !== 'string' || !Array.isArray(args)) return false
  const words = [command, ...args.map(String)]
  const verb = words.findIndex((word, i) => word === 'mcp' && words[i + 1] === 'serve')
  // win32 takes both kinds of slash for separators.
  return words.slice(0, Math.max(verb, 0)).some((word) => PROGRAM.test(path.win32.basename(word)))
}

/** A file that is not understood, or that is written in a way that is not edited here. */
export function notUnderstood(reason: string): NodeError {
  return new NodeError('CONFIG_INVALID', reason)
}

/** An edit and its purpose. */
export interface EditCheck {
  readonly container: string
  readonly name: string
  readonly entry: object | undefined
}

/** Compares a text before and after an edit: only the entry may differ. @throws NodeError INTERNAL */
export function checkEdit(before: EntryValues, after: EntryValues, { container, name, entry }: EditCheck): void {
  const [old, now] = [before, after].map((values) => partsOf(values, container, name)) as [EntryParts, EntryParts]
  const isAsMeant =
    isDeepStrictEqual(now.rest, old.rest) &&
    isDeepStrictEqual(now.others, old.others) &&
    (entry === undefined ? now.entry === undefined : isDeepStrictEqual({ ...(now.entry as object) }, { ...entry }))
  if (!isAsMeant) throw new NodeError('INTERNAL', 'the edited file would have a wrong entry; nothing was written')
}

interface EntryParts {
  readonly rest: EntryValues
  readonly others: EntryValues
  readonly entry: unknown
}

/** The copies are flat: parsers differ in the prototypes of their objects. */
function partsOf(values: EntryValues, container: string, name: string): EntryParts {
  const { [container]: servers, ...rest } = values
  const { [name]: entry, ...others } = (servers ?? {}) as EntryValues
  return { rest, others, entry }
}
