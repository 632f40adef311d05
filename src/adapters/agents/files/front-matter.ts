import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type Document, type Node } from 'yaml'
import { jsonFault } from '../../../kit/json.js'
import { messageOf } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import { unresolvedAlias, yamlReason } from '../../../kit/yaml-reason.js'
import { quotePlainValues, quotesHint } from './plain-values.js'

/** Largest front matter, in characters: bounds the cost of parsing a hostile one. The body of a file may be longer. */
export const MAX_FRONT_MATTER = 32_768
/** Most uses of YAML anchors in one front matter, their contents counted: `&a [*b, *b]` cannot grow without bound. */
const MAX_ALIASES = 32
/** Deepest nesting of brackets. The parser is recursive: deeper text is refused before it is parsed. */
const MAX_BRACKETS = 64

/** Something wrong at a place of a file. */
export interface PlacedFault {
  /** 1-based; null when it has no place. */
  readonly line: number | null
  readonly reason: string
}

/** A step into YAML data: a key or an index. */
export type PathStep = string | number

/** The YAML between the two `---` lines as data with line numbers, and the text after it. */
export type FrontMatter =
  | {
      readonly ok: true
      readonly data: unknown
      readonly body: string
      /** Line (1-based) of the value at a path; of its nearest parent when it is missing. */
      lineOf(path: readonly PathStep[]): number
    }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] }

/**
 * Reads the YAML front matter of a Markdown text. Never throws. A plain value at the top level that is no YAML, such as
 * a description with `: ` in it, is a text, as for the clients of sub-agent files.
 * Bounds: 32 Ki characters of front matter, JSON nesting, 32 uses of anchors; faults carry lines of the whole file.
 */
export function readFrontMatter(text: string): FrontMatter {
  const parts = splitFrontMatter(text)
  if (typeof parts === 'string') return failed([{ line: 1, reason: parts }])
  const read = parse(parts)
  if (read.ok) return read
  const yaml = quotePlainValues(parts.yaml, isReadable)
  const repaired = yaml === parts.yaml ? read : parse({ ...parts, yaml })
  return repaired.ok ? repaired : read
}

const PARSING = { prettyErrors: false, uniqueKeys: true, logLevel: 'silent' } as const

function parse({ yaml, body }: MatterParts): FrontMatter {
  const lines = new LineCounter()
  try {
    const document = parseDocument(yaml, { ...PARSING, lineCounter: lines })
    // The block starts on the second line of the file.
    const lineAt = (offset: number): number => lines.linePos(offset).line + 1
    if (document.errors.length > 0) return failed(syntaxFaults(document, yaml, lineAt))
    const key = collectionKey(document)
    if (key !== null)
      return failed([{ line: lineAt(key), reason: 'not YAML that is used here: a key must be plain text' }])
    const data: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    const fault = jsonFault(data)
    if (fault !== null) return failed([{ line: 2, reason: `front matter: ${fault}` }])
    return { ok: true, data, body, lineOf: (path) => lineAt(offsetOf(document, path)) }
  } catch (error) {
    return failed([{ line: 2, reason: `not YAML: ${aliasReason(error)}` }])
  }
}

function syntaxFaults(
  { errors }: Document.Parsed,
  yaml: string,
  lineAt: (offset: number) => number
): readonly PlacedFault[] {
  const lines = yaml.split('\n')
  return errors.slice(0, 20).map(({ code, pos }) => {
    const line = lineAt(pos[0])
    return { line, reason: `not YAML: ${yamlReason(code)}${quotesHint(code, lines[line - 2] ?? '')}` }
  })
}

/** Is it YAML by itself? Anchors of other keys are not looked for. */
function isReadable(pair: string): boolean {
  return parseDocument(pair, PARSING).errors.length === 0
}

/** Why a document without syntax errors gives no data. */
function aliasReason(error: unknown): string {
  const message = messageOf(error)
  const name = unresolvedAlias(message)
  if (name !== null) return `"*${shown(name)}" begins with a * and needs quotes`
  return /alias count/.test(message) ? `more than ${MAX_ALIASES} uses of anchors` : message
}

function failed(faults: readonly PlacedFault[]): FrontMatter {
  return { ok: false, faults }
}

/** A Markdown text in two. */
export interface MatterParts {
  /** The lines between the two `---` lines. */
  readonly yaml: string
  /** The text after them. */
  readonly body: string
}

/** Divides a text at its `---` lines; the reason when it has no front matter that can be read. */
export function splitFrontMatter(text: string): MatterParts | string {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (opening === null) return 'the file must begin with a line of three dashes (---) that opens its front matter'
  const closing = /^---[ \t]*\r?$/gm
  closing.lastIndex = opening[0].length
  const end = closing.exec(text)
  if (end === null) return 'the front matter is never closed: a second line of three dashes (---) is missing'
  const yaml = text.slice(opening[0].length, end.index)
  if (yaml.length > MAX_FRONT_MATTER) return `the front matter is longer than ${MAX_FRONT_MATTER / 1024} KiB`
  if (/^%/m.test(yaml)) return 'YAML directives (lines that begin with %) are not used here'
  if (isTooDeep(yaml)) return 'the front matter is nested too deeply'
  return { yaml, body: text.slice(closing.lastIndex).replace(/^\n/, '') }
}

/** Each bracket of a flow collection and each dash of `- - -` costs the parser a level of its stack. */
function isTooDeep(yaml: string): boolean {
  let depth = 0
  for (const char of yaml) {
    if (char === '[' || char === '{') depth++
    else if (char === ']' || char === '}') depth--
    if (depth > MAX_BRACKETS) return true
  }
  return /^(?: *[-?:] ){33}/m.test(yaml)
}

/**
 * Where a list or mapping serves as a key: as text such keys grow by powers with their nesting. null when none does.
 */
function collectionKey(document: Document.Parsed): number | null {
  let found: number | null = null
  visit(document, {
    Pair: (_, pair) => {
      if (pair.key === null || isScalar(pair.key)) return undefined
      found = startOf(pair.key) ?? 0
      return visit.BREAK
    }
  })
  return found
}

function offsetOf(document: Document.Parsed, path: readonly PathStep[]): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const step of path) {
    const next = childOf(isAlias(node) ? node.resolve(document) : node, step)
    if (next === null) break
    offset = startOf(next.at) ?? offset
    node = next.value
  }
  return offset
}

function childOf(node: unknown, step: PathStep): { at: unknown; value: unknown } | null {
  if (isMap(node)) {
    const pair = node.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(step))
    return pair === undefined ? null : { at: pair.key, value: pair.value }
  }
  const item = isSeq(node) ? node.items[Number(step)] : undefined
  return item === undefined ? null : { at: item, value: item }
}

function startOf(node: unknown): number | null {
  return (node as Node | null)?.range?.[0] ?? null
}
