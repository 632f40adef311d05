import { isDeepStrictEqual } from 'node:util'
import { parse, TomlError } from 'smol-toml'
import {
  checkEdit,
  type EditCheck,
  notUnderstood,
  type ServerEntry,
  type ServerFormat,
  stateOf,
  type EntryValues
} from './entry.js'
import { type TextEdit, edited, eolOf } from './json-text.js'
import { type Statement, statementsOf } from './toml-text.js'

/** One table of a file: its header and the text up to the next one. */
interface Section {
  readonly header: Statement
  /** Its dotted name, e.g. `['mcp_servers', 'files', 'env']`. */
  readonly path: readonly string[]
  readonly pairs: readonly Statement[]
}

/**
 * Servers in tables `[container.name]` of a TOML file, edited as text. An entry that is written another way (an inline
 * table, dotted keys) is read, not edited.
 */
export function tomlFormat(container: string): ServerFormat {
  return {
    find: (text, name) => entryOf(valuesOf(text), container, name),
    put(text, name, entry) {
      const found = entryOf(valuesOf(text), container, name)
      if (found === undefined)
        return checked(text, appended(text, table([container, name], entry)), { container, name, entry })
      const sections = sectionsOf(text, container, name)
      const own = sections.find((one) => one.path.length === 2) as Section
      if (stateOf(found, entry) !== 'foreign') {
        return checked(text, edited(text, updates(text, own, [entry, found as EntryValues])), {
          container,
          name,
          entry: { ...(found as EntryValues), ...entry }
        })
      }
      const others = sections.filter((one) => one !== own).map((one) => removal(text, one))
      const { start, end } = spanOf(own)
      const lines = table([container, name], entry).join(eolOf(text)) + (text[end - 1] === '\n' ? eolOf(text) : '')
      return checked(text, edited(text, [...others, { start, end, text: lines }]), { container, name, entry })
    },
    remove(text, name) {
      if (entryOf(valuesOf(text), container, name) === undefined) return text
      const edits = sectionsOf(text, container, name).map((one) => removal(text, one))
      return checked(text, edited(text, edits), { container, name, entry: undefined })
    }
  }
}

/** Adds lines behind an empty one; a text without a line break at its end gets none there. */
function appended(text: string, lines: readonly string[]): string {
  const eol = eolOf(text)
  if (text === '') return lines.join(eol) + eol
  return text.endsWith('\n') ? text + eol + lines.join(eol) + eol : text + eol + eol + lines.join(eol)
}

function table(path: readonly string[], entry: ServerEntry): string[] {
  return [`[${path.join('.')}]`, ...Object.entries(entry).map(([key, value]) => `${key} = ${rendered(value)}`)]
}

/** A string, or an array of such. JSON's escapes are TOML's; DEL may not stand in a string of TOML as it is. */
function rendered(value: string | readonly string[]): string {
  if (typeof value !== 'string') return `[${value.map(rendered).join(', ')}]`
  return JSON.stringify(value).replaceAll('\u007f', '\\u007f')
}

/** Brings the keys of an entry of ours up to date one by one. */
function updates(
  text: string,
  { header, pairs }: Section,
  [entry, found]: readonly [ServerEntry, EntryValues]
): TextEdit[] {
  return Object.entries(entry).flatMap(([key, value]): TextEdit[] => {
    if (isDeepStrictEqual(found[key], value)) return []
    const line = `${key} = ${rendered(value)}`
    const old = pairs.find((one) => isDeepStrictEqual(pathOf(parsed(text.slice(one.start, one.end))), [key]))
    if (old !== undefined) return [{ start: old.start, end: old.end, text: line }]
    return [{ start: header.end, end: header.end, text: eolOf(text) + line }]
  })
}

/** A table as a whole, with the one empty line before it. */
function removal(text: string, section: Section): TextEdit {
  const { start, end } = spanOf(section)
  const isLastLine = end === text.length && text[end - 1] !== '\n'
  const before = text.slice(0, start)
  const gap = (isLastLine ? /(?:\r?\n){1,2}$/ : /(?<=\n)\r?\n$/).exec(before)?.[0] ?? ''
  return { start: start - gap.length, end, text: '' }
}

function spanOf({ header, pairs }: Section): { readonly start: number; readonly end: number } {
  return { start: header.lineStart, end: (pairs.at(-1) ?? header).lineEnd }
}

/** The tables of an entry. @throws NodeError CONFIG_INVALID when it is not written as such */
function sectionsOf(text: string, container: string, name: string): Section[] {
  const all: { header: Statement; path: readonly string[]; pairs: Statement[] }[] = []
  for (const one of statementsOf(text)) {
    if (one.isHeader) all.push({ header: one, path: pathOf(parsed(text.slice(one.start, one.end))), pairs: [] })
    else all.at(-1)?.pairs.push(one)
  }
  const own = all.filter(({ path }) => path[0] === container && path[1] === name)
  if (own.some((one) => one.path.length === 2)) return own
  throw notUnderstood(`${container}.${name} is not written as a table [${container}.${name}]; edit it by hand`)
}

/** The names on the way down a text of one key or header. */
function pathOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const [[key, inner] = []] = Object.entries(value)
  return key === undefined ? [] : [key, ...pathOf(inner)]
}

function entryOf(values: EntryValues, container: string, name: string): unknown {
  const servers = values[container]
  if (servers === undefined) return undefined
  if (typeof servers !== 'object' || servers === null || Array.isArray(servers))
    throw notUnderstood(`${container} is no table`)
  return Object.hasOwn(servers, name) ? (servers as EntryValues)[name] : undefined
}

/**
 * The edited text, when it says what the first one says but for the entry.
 * @throws NodeError CONFIG_INVALID, INTERNAL
 */
function checked(before: string, after: string, check: EditCheck): string {
  checkEdit(valuesOf(before), valuesAfter(after, check), check)
  return after
}

function valuesAfter(text: string, { container }: EditCheck): EntryValues {
  try {
    return parsed(text)
  } catch {
    // The text was valid before: an inline table takes no table of its own.
    throw notUnderstood(`${container} is written in a way that takes no table [${container}.<name>]; edit it by hand`)
  }
}

function valuesOf(text: string): EntryValues {
  try {
    return parsed(text)
  } catch (error) {
    if (error instanceof TomlError)
      throw notUnderstood(`line ${error.line} is no TOML: ${error.message.split('\n')[0] ?? ''}`)
    if (error instanceof RangeError) throw notUnderstood('it is nested too deep')
    throw error
  }
}

function parsed(text: string): EntryValues {
  return parse(text, { integersAsBigInt: 'asNeeded' })
}
