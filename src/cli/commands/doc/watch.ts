import { shown } from '../../../kit/text.js'
import type { DocumentReading } from '../../../ports/document-api.js'
import { NodeError } from '../../../kit/errors.js'
import type { Action, CommandContext } from '../../context.js'
import { noteSkipped, partOption, readPart } from '../../documents/part.js'
import { EXIT } from '../../exit-codes.js'
import type { Options } from '../../options.js'
import { jsonLine } from '../../terminal/output.js'
import { timeText } from '../../words.js'

/** Displayed characters of inserted and of removed text on one line. */
const PIECE_MAX = 120
/** Errors of a document that has not arrived yet. */
const NOT_HERE: readonly string[] = ['PEER_OFFLINE', 'TIMEOUT']

/** `doc watch <doc>`: what it is now, then a line for each change. */
export const watchDocument: Action = async (context, [document = ''], options) => {
  const { output, api } = context
  const { id, type, root } = await partHere(context, document, options)
  let last: DocumentReading | null = null
  for await (const reading of api().watch('documents.read', { document: id, type, root })) {
    const at = new Date().toISOString()
    if (output.json) output.object('doc-change@1', { at, ...reading })
    else
      output.print(
        `${output.paint('dim', timeText(at))}  ${last === null ? stateText(reading) : changeText(last, reading)}`
      )
    if (last === null) noteSkipped(output, reading)
    last = reading
  }
  return EXIT.ok
}

/** The part that is meant; where others wrote the document and it is not here, once it is. */
async function partHere({ output, api }: CommandContext, document: string, options: Options): Promise<DocumentReading> {
  try {
    return await readPart(api(), document, options)
  } catch (error) {
    if (!(error instanceof NodeError) || !NOT_HERE.includes(error.code)) throw error
    if (!output.json) output.note(`${error.message}; it is shown when it arrives`)
  }
  for await (const _ of api().watch('documents.read', { document, ...(partOption(options) ?? { type: 'text' }) })) break
  return await readPart(api(), document, options)
}

function stateText({ name, type, value }: DocumentReading): string {
  const size =
    typeof value === 'string' ? `${value.length} characters` : `${Object.keys(value as object).length} entries`
  return `${shown(name)}  ${type} of ${size}`
}

/** How a value became another one, in few words. */
export function changeText(before: Pick<DocumentReading, 'value'>, { value }: Pick<DocumentReading, 'value'>): string {
  if (typeof value === 'string') return textChange(String(before.value), value)
  if (Array.isArray(value)) return listChange(before.value as readonly unknown[], value)
  return mapChange(before.value as Record<string, unknown>, value as Record<string, unknown>)
}

function textChange(old: string, next: string): string {
  const { head, oldEnd, nextEnd } = span(old, next)
  return [`at ${head}`, piece('-', old.slice(head, oldEnd)), piece('+', next.slice(head, nextEnd))]
    .filter((one) => one !== '')
    .join('  ')
}

function listChange(old: readonly unknown[], next: readonly unknown[]): string {
  const { head, oldEnd, nextEnd } = span(old.map(jsonLine), next.map(jsonLine))
  const went = old.slice(head, oldEnd).map((one) => `-${shown(jsonLine(one), PIECE_MAX)}`)
  const came = next.slice(head, nextEnd).map((one) => `+${shown(jsonLine(one), PIECE_MAX)}`)
  return [`at ${head}`, ...few([...went, ...came])].join('  ')
}

function mapChange(old: Record<string, unknown>, next: Record<string, unknown>): string {
  const went = Object.keys(old).filter((key) => !Object.hasOwn(next, key))
  const came = Object.keys(next).filter((key) => !Object.hasOwn(old, key) || jsonLine(old[key]) !== jsonLine(next[key]))
  const words = [
    ...went.map((key) => `-${shown(key)}`),
    ...came.map((key) => `${shown(key)}=${shown(jsonLine(next[key]), PIECE_MAX)}`)
  ]
  return few(words).join('  ')
}

function few(words: readonly string[]): string[] {
  return words.length <= 10 ? [...words] : [...words.slice(0, 10), `and ${words.length - 10} more`]
}

function piece(sign: string, text: string): string {
  return text === '' ? '' : `${sign}${shown(jsonLine(text), PIECE_MAX)}`
}

/** Where two sequences differ: from `head` up to an end in each. */
function span(old: ArrayLike<unknown>, next: ArrayLike<unknown>): { head: number; oldEnd: number; nextEnd: number } {
  let head = 0
  while (head < old.length && head < next.length && old[head] === next[head]) head++
  let [oldEnd, nextEnd] = [old.length, next.length]
  while (oldEnd > head && nextEnd > head && old[oldEnd - 1] === next[nextEnd - 1]) {
    oldEnd--
    nextEnd--
  }
  return { head, oldEnd, nextEnd }
}
