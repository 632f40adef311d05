import { BODY_MAX } from '../../../adapters/control/wire.js'
import { NodeError } from '../../../kit/errors.js'
import { isKeyText } from '../../../kit/ids.js'
import { JSON_LIMITS } from '../../../kit/json.js'
import { shellWord, shown } from '../../../kit/text.js'
import type { DocumentReading } from '../../../ports/document-api.js'
import type { Calls, NodeApi } from '../../../ports/node-api.js'
import type { Action } from '../../context.js'
import { noteSkipped, partOption, partText, readPart, refuseEmptying, wholeEdit } from '../../documents/part.js'
import { EXIT } from '../../exit-codes.js'
import { given, isSet, type Options, textOption } from '../../options.js'
import { jsonText, type Output } from '../../terminal/output.js'
import { readStdin } from '../../stdin.js'

/** As much as a document may have. */
const TEXT_MAX = 16_777_216
/** Beside what was typed a call names the document and the part of it. */
const CALL_BYTES = BODY_MAX - 4096
const CALL_KEYS = JSON_LIMITS.maxKeys

type EditedPart = Pick<DocumentReading, 'id' | 'name' | 'type' | 'root' | 'value'>
type ExportedPart = Pick<DocumentReading, 'root' | 'value'> & { readonly fault?: string }

/** `doc get <doc>`: the document alone. */
export const getDocument: Action = async ({ output, api }, [document = ''], options) => {
  const part = await readPart(api(), document, options)
  if (output.json) output.object('doc@1', part)
  else output.contents(partText(part))
  noteSkipped(output, part)
  return EXIT.ok
}

/** `doc set <doc> <text|->`: sets its content. */
export const setDocument: Action = async ({ output, api }, [document = '', text = ''], options) => {
  const isMeant = isSet(options, 'allowEmpty')
  const typed = text === '-' ? await readStdin(TEXT_MAX, { again: output.typed, empty: isMeant || 'flag' }) : text
  const { part, made } = await partToSet(api(), document, { options, typed })
  if (!isMeant && made === null)
    refuseEmptying(part, typed, `${output.typed ?? `a2a-node doc set ${shellWord(document)} ''`} --allow-empty`)
  const changed = await written(api(), part, typed)
  const { id, name, type, root } = part
  const created = made?.created === true
  if (output.json) output.object('doc-set@1', { id, name, type, root, changed, created })
  else output.note(`${shown(name)} ${created ? 'is new and set' : changed ? 'is set' : 'was so already'}`)
  if (!output.json && created && made.access !== null)
    output.note(
      `guests of yours read it only; for all to write: ${output.hint(`a2a-node doc access ${shellWord(name)} --write everybody`)}`
    )
  return EXIT.ok
}

/** Sets the content of a part; false: unchanged. A text too large for one call is written in pieces. */
async function written(api: NodeApi, part: EditedPart, typed: string): Promise<boolean> {
  const edit = wholeEdit(part, typed)
  const isOneCall =
    Buffer.byteLength(JSON.stringify(typed)) <= CALL_BYTES &&
    !('map' in edit && Object.keys(edit.map).length > CALL_KEYS)
  if (isOneCall) return (await api.call('documents.edit', { document: part.id, edit })).changed
  const { DocumentFork } = await import('../../../adapters/control/document-fork.js')
  const fork = await DocumentFork.open(api, part.id)
  try {
    return await fork.save(part.root, edit)
  } finally {
    fork.close()
  }
}

/** The part that is meant; what was typed is checked before a document is created for good. */
async function partToSet(
  api: NodeApi,
  document: string,
  { options, typed }: { readonly options: Options; readonly typed: string }
): Promise<{ readonly part: EditedPart; readonly made: Calls['documents.create']['result'] | null }> {
  try {
    return { part: await readPart(api, document, options), made: null }
  } catch (error) {
    // An id is none that a document could be called by.
    if (!(error instanceof NodeError) || error.code !== 'DOCUMENT_NOT_FOUND' || isKeyText(document)) throw error
    const { type, root } = partOption(options) ?? { type: 'text' }
    const part = { type, root: root ?? type }
    const { mustFitNew } = await import('../../../adapters/control/document-fork.js')
    mustFitNew(part.root, wholeEdit(part, typed))
    const made = await api.call('documents.create', { name: document })
    return { part: { id: made.id, name: made.name, value: '', ...part }, made }
  }
}

/** `doc export <doc>`. */
export const exportDocument: Action = async ({ output, api }, [document = ''], options) => {
  const format = textOption(options, 'format') ?? 'text'
  if (format === 'yjs') {
    if (partOption(options) !== null)
      throw new NodeError('USAGE', 'yjs is always the whole document: leave --type and --root out')
    const update = await wholeUpdate(api(), document)
    const { id, name, ...gaps } = await gapsOf(api(), document)
    if (output.json)
      output.object('doc-export@1', { id, name, format, base64: Buffer.from(update).toString('base64'), ...gaps })
    else output.contents(update)
    noteSkipped(output, { name, ...gaps })
  } else if (format === 'json') await exportJson(output, api(), { document, options })
  else {
    const part = await readPart(api(), document, options)
    const { id, name, skipped } = part
    if (output.json) output.object('doc-export@1', { id, name, format, text: partText(part), ...given({ skipped }) })
    else output.contents(partText(part))
    noteSkipped(output, part)
  }
  return EXIT.ok
}

/** Exports the named part, else every part with content. An unreadable part is named. */
async function exportJson(
  output: Output,
  api: NodeApi,
  { document, options }: { document: string; options: Options }
): Promise<void> {
  const meant = partOption(options)
  const parts: readonly ExportedPart[] =
    meant === null ? await allParts(api, document) : [await api.call('documents.read', { document, ...meant })]
  const { id, name, ...gaps } = await gapsOf(api, document)
  const faults = parts.flatMap(({ root, fault }) => (fault === undefined ? [] : [{ root, reason: fault }]))
  const value = Object.fromEntries(
    parts.flatMap(({ root, value: one, fault }) => (fault === undefined ? [[root, one]] : []))
  )
  if (output.json)
    output.object('doc-export@1', { id, name, format: 'json', parts: value, unreadable: faults, ...gaps })
  else output.print(jsonText(value))
  for (const { root, reason } of faults) output.note(`the part ${shown(root)} cannot be read: ${reason}`)
  noteSkipped(output, { name, ...gaps })
}

/** Name of a document and its missing contributions, which are known once it was opened. */
async function gapsOf(api: NodeApi, document: string): Promise<Pick<DocumentReading, 'id' | 'name' | 'skipped'>> {
  const { id, name, skipped } = await api.call('documents.show', { document })
  return { id, name, ...given({ skipped }) }
}

async function allParts(api: NodeApi, document: string): Promise<readonly ExportedPart[]> {
  const { partsOfUpdate } = await import('../../../adapters/control/document-fork.js')
  const parts = partsOfUpdate(await wholeUpdate(api, document))
  return parts.length > 0 ? parts : [{ root: 'text', value: '' }]
}

async function wholeUpdate(api: NodeApi, document: string): Promise<Uint8Array> {
  for await (const line of api.watch('documents.live', { document })) if (line.type === 'open') return line.update
  throw new NodeError('CHANNEL_CLOSED', 'the node ended the document before it was whole', { next: [] })
}
