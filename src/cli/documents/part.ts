import { fromWire, PARAMS_LIMITS } from '../../adapters/control/wire.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { DocumentReading, DocumentRoot, DocumentType } from '../../ports/document-api.js'
import type { NodeApi } from '../../ports/node-api.js'
import { jsonArgument, type Options, textOption } from '../options.js'
import { jsonText, type Output } from '../terminal/output.js'

const TYPES: readonly DocumentType[] = ['text', 'map', 'list']
const ROOT_MAX = 256
/**
 * A map of a document may have more keys than one call takes: it is written in pieces, and the node bounds what each
 * holds.
 */
const VALUE_LIMITS = { ...PARAMS_LIMITS, maxKeys: Number.POSITIVE_INFINITY }

/**
 * The part of a document for a command line: by `--type` and `--root`, else the only usual part with content, else its
 * text.
 * @throws NodeError USAGE; AMBIGUOUS_NAME when several parts have content; CONFLICT when its only content is in an
 * unusual part; DOCUMENT_NOT_FOUND
 */
export async function readPart(api: NodeApi, document: string, options: Options): Promise<DocumentReading> {
  const meant = partOption(options)
  if (meant !== null) return await api.call('documents.read', { document, ...meant })
  const parts = await partsOf(api, document)
  const [first, second] = parts.filter(isFilled)
  if (second === undefined) return first ?? empty(parts, document)
  throw new NodeError('AMBIGUOUS_NAME', 'the document holds more than one part: say which one', {
    data: { candidates: parts.filter(isFilled).map(({ type }) => `--type ${type}`) },
    next: parts.filter(isFilled).map(({ type }) => `--type ${type}`)
  })
}

/**
 * The parts of a document under their usual names; null for one whose name holds something else.
 * @throws NodeError DOCUMENT_NOT_FOUND
 */
async function partsOf(api: NodeApi, document: string): Promise<(DocumentReading | null)[]> {
  return await Promise.all(
    TYPES.map(async (type) =>
      api.call('documents.read', { document, type }).catch((error: unknown) => {
        if (error instanceof NodeError && error.code === 'CONFLICT') return null
        throw error
      })
    )
  )
}

/**
 * The text of a document of whose usual parts none holds anything.
 * @throws NodeError CONFLICT when one holds what is none of them
 */
function empty(parts: readonly (DocumentReading | null)[], document: string): DocumentReading {
  const [text] = parts
  if (text !== null && text !== undefined && !parts.includes(null)) return text
  throw new NodeError('CONFLICT', 'the document has content that is no text, map or list', {
    next: [`a2a-node doc export ${shellWord(document)} --format json`]
  })
}

/**
 * Refuses a text without content for a part with content: a variable, a pipe or an editor may have failed.
 * @throws NodeError USAGE, with `again`, the command that means it
 */
export function refuseEmptying(
  { name, type, value }: Pick<DocumentReading, 'name' | 'type' | 'value'>,
  typed: string,
  again: string
): void {
  if (type !== 'text' || String(value).trim() === '' || typed.trim() !== '') return
  throw new NodeError('USAGE', `the text is empty, and ${shown(name)} is not: --allow-empty empties it`, {
    next: [again]
  })
}

function isFilled(part: DocumentReading | null): part is DocumentReading {
  if (part === null) return false
  const { value } = part
  return typeof value === 'string' ? value !== '' : Object.keys(value as object).length > 0
}

/** The part of `--type` and `--root`; null when neither is given. @throws NodeError USAGE */
export function partOption(options: Options): DocumentRoot | null {
  const type = textOption(options, 'type') as DocumentType | undefined
  const root = textOption(options, 'root')
  if (type === undefined && root === undefined) return null
  if (type === undefined) throw new NodeError('USAGE', '--root needs --type: a name alone has no type')
  if (root !== undefined && root.length > ROOT_MAX)
    throw new NodeError('USAGE', `--root takes at most ${ROOT_MAX} characters`)
  return root === undefined ? { type } : { type, root }
}

/** A part as a person edits it: the text itself, or JSON over several lines. */
export function partText({ type, value }: Pick<DocumentReading, 'type' | 'value'>): string {
  return type === 'text' ? String(value) : `${jsonText(value)}\n`
}

/**
 * Prints missing contributions on standard error, since the document goes to a file or a program. Objects of `--json`
 * hold them.
 */
export function noteSkipped(output: Output, { name, skipped = [] }: Pick<DocumentReading, 'name' | 'skipped'>): void {
  if (output.json) return
  for (const { node, reason } of skipped)
    output.note(`not all that ${shown(node.name, 64)} wrote is in it: ${shown(reason)}`)
  if (skipped.length > 0) output.note(`  try: ${output.hint(`a2a-node doc show ${shellWord(name)}`)}`)
}

/** The edit that sets a part to the typed content. @throws NodeError USAGE for content that is no JSON of that type */
export function wholeEdit({ type, root }: Pick<DocumentReading, 'type' | 'root'>, typed: string): WholeEdit {
  if (type === 'text') return { type, root, text: typed }
  // Bytes are printed as the control API writes them, and read so again; what they make is for the document to bound.
  const value = fromWire(jsonArgument(typed, `what a ${type} is set to`, VALUE_LIMITS))
  if (type === 'list') {
    if (Array.isArray(value)) return { type, root, list: value }
    throw new NodeError('USAGE', 'a list is set to a JSON array')
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { type, root, map: value as Record<string, unknown> }
  throw new NodeError('USAGE', 'a map is set to a JSON object')
}

/** A whole part made equal to something. */
export type WholeEdit =
  | { readonly type: 'text'; readonly root: string; readonly text: string }
  | { readonly type: 'map'; readonly root: string; readonly map: Readonly<Record<string, unknown>> }
  | { readonly type: 'list'; readonly root: string; readonly list: readonly unknown[] }
