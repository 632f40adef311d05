import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { DocumentChangeInfo, DocumentHistoryInfo, FormerDocument } from '../../../ports/document-api.js'
import type { Action } from '../../context.js'
import { noteSkipped, partOption } from '../../documents/part.js'
import { EXIT } from '../../exit-codes.js'
import { countOption, given, type Options, sinceOption, textOption } from '../../options.js'
import { jsonText, type Output } from '../../terminal/output.js'
import { plural, printTable } from '../../terminal/render.js'
import { bytesText, timeText } from '../../words.js'

const MAX_CHANGES = 1000
const ENTRY = /^[a-z0-9]{8,64}\/[1-9]\d{0,9}$/

/** `doc history <doc>`: its last changes, newest first. */
export const documentHistory: Action = async ({ output, api }, [document = ''], options) => {
  const limit = countOption(options, 'limit', [1, MAX_CHANGES])
  const history = await api().call('documents.history', { document, ...given({ limit }) })
  if (output.json) output.object('doc-history@1', history)
  else await printHistory(output, history)
  noteSkipped(output, history)
  return EXIT.ok
}

async function printHistory(output: Output, { name, changes, total, merged }: DocumentHistoryInfo): Promise<void> {
  if (changes.length === 0) output.print(`no changes of ${shown(name)} are here`)
  else await printTable(output, ['TIME', 'BY', 'KIND', 'CHANGED', 'SIZE', 'ENTRY'], changes.map(row))
  if (total > changes.length)
    output.note(`${plural(total - changes.length, 'older change')} not listed: --limit ${Math.min(total, MAX_CHANGES)}`)
  if (merged !== null) {
    const since = merged.since === null ? '' : `, in use here since ${timeText(merged.since)}`
    output.note(`older changes (${plural(merged.blocks, 'block')}) are merged in a snapshot${since}`)
  }
  if (changes.length > 0) output.note("times are those of the authors' clocks; the order is that of the changes")
}

function row({ at, by, parts, added, removed, bytes, entry }: DocumentChangeInfo): string[] {
  const kinds = parts.map(({ root, type }) => (type === null || type === root ? root : `${type} ${root}`))
  return [timeText(at), by.name, kinds.join(', '), `+${added} -${removed}`, bytesText(bytes), entry]
}

/** `doc show <doc> --at <time|entry>`: its content as it was. */
export const showFormer: Action = async ({ output, api }, [document = ''], options) => {
  const root = rootOption(options)
  const former = await api().call('documents.past', { document, at: atOption(options) })
  const parts = former.parts.filter((part) => root === undefined || part.root === root)
  if (output.json) output.object('doc-former@1', { ...former, parts })
  else printFormer(output, { ...former, parts })
  return EXIT.ok
}

/** A text stands alone, as `doc get` prints it; several parts are one JSON object by their names. */
function printFormer(output: Output, { name, parts, change }: FormerDocument): void {
  const [first, second] = parts
  const readable = parts.filter(({ fault }) => fault === undefined)
  if (first === undefined) output.contents('')
  else if (second === undefined && typeof first.value === 'string') output.contents(first.value)
  else if (second === undefined) output.contents(`${jsonText(first.value)}\n`)
  else output.contents(`${jsonText(Object.fromEntries(readable.map(({ root, value }) => [root, value])))}\n`)
  for (const { root, fault } of parts)
    if (fault !== undefined) output.note(`the part ${shown(root)} cannot be read: ${fault}`)
  output.note(`${shown(name)} ${changeText(change)}`)
}

function changeText({ entry, at, by }: DocumentChangeInfo): string {
  return `after change ${entry} of ${timeText(at)} by ${shown(by.name, 64)}`
}

/** `doc restore <doc> --at <time|entry>`: writes a change that makes its content equal to a former state. */
export const restoreDocument: Action = async ({ output, api }, [document = ''], options) => {
  const root = rootOption(options)
  const done = await api().call('documents.restore', { document, at: atOption(options), ...given({ root }) })
  if (output.json) output.object('doc-restored@1', done)
  else if (done.restored.length === 0) output.note(`${shown(done.name)} was so already`)
  else {
    const parts = done.restored.map(({ root: part }) => shown(part)).join(', ')
    output.note(`${shown(done.name)} is restored (${parts}) as it was ${changeText(done.change)}`)
  }
  return EXIT.ok
}

/** The part of `--root`, or the usual one of `--type`; undefined: all. @throws NodeError USAGE */
function rootOption(options: Options): string | undefined {
  const part = partOption(options)
  return part === null ? undefined : (part.root ?? part.type)
}

/** An entry as it was typed, a time or a time ago in ISO 8601. @throws NodeError USAGE */
function atOption(options: Options): string {
  const text = textOption(options, 'at')
  if (text === undefined)
    throw new NodeError('USAGE', '--at is missing: a time or an entry of a2a-node doc history', {
      next: ['a2a-node doc history --help']
    })
  if (ENTRY.test(text)) return text
  const time = sinceOption(options, 'at')
  return new Date(time ?? 0).toISOString()
}
