import { NodeError } from '../../../kit/errors.js'
import { shortId } from '../../../kit/ids.js'
import { DOCUMENT_NAME } from '../../../kit/names/rule.js'
import { safeName } from '../../../kit/names/safe-name.js'
import { shown } from '../../../kit/text.js'
import type { DocumentDetail, DocumentInfo, DocumentWriter } from '../../../ports/document-api.js'
import { emptyText, hintedAll, noteProblems } from '../../terminal/banner.js'
import { canAsk, confirm } from '../../terminal/confirm.js'
import type { Action, CommandContext } from '../../context.js'
import { accessFacts } from '../../documents/facts.js'
import { EXIT } from '../../exit-codes.js'
import { partOption } from '../../documents/part.js'
import { isSet, textOption } from '../../options.js'
import type { Output } from '../../terminal/output.js'
import { type Cell, plural, printFacts, printTable } from '../../terminal/render.js'
import { agoText, bytesText } from '../../words.js'

/** `doc ls`: the documents that may be seen. */
export const listDocuments: Action = async ({ output, api }) => {
  const { documents, problems } = await api().call('documents.list', {})
  if (output.json) output.object('docs@1', { documents, problems: hintedAll(output, problems) })
  else if (documents.length === 0) output.print(emptyText('documents', problems))
  else await printTable(output, ['NAME', 'SIZE', 'WRITERS', 'MAY', 'KEPT', 'BY', 'CREATED'], documents.map(row))
  if (!output.json) for (const one of documents) noteWarning(output, one)
  noteProblems(output, problems)
  return EXIT.ok
}

/** A deceptive name is printed with the start of the document's unique id. */
function nameText({ id, name, nameWarning }: DocumentInfo): string {
  return nameWarning === undefined ? name : `${safeName(name, DOCUMENT_NAME)} (${shortId(id)})`
}

function noteWarning(output: Output, one: DocumentInfo): void {
  if (one.nameWarning !== undefined)
    output.note(`${output.paintNote('yellow', 'warning')}  ${nameText(one)}: ${shown(one.nameWarning)}`)
}

function row(one: DocumentInfo): Cell[] {
  return [
    { text: nameText(one), style: 'bold' },
    bytesText(one.bytes),
    String(one.writers),
    mayText(one),
    keptText(one),
    one.creator.name,
    agoText(one.createdAt, Date.now())
  ]
}

/** `part`: streams are left out, or end before their last block. */
function keptText({ following, left, blocks }: DocumentInfo): string {
  if (following) return 'yes'
  return left !== undefined && blocks > 0 ? 'part' : 'no'
}

function mayText({ may }: DocumentInfo): string {
  return may.write ? 'write' : 'read'
}

/** `doc show <doc>`: writers and access of a document; with `--at` its former content. */
export const showDocument: Action = async (context, args, options) => {
  const { output, api } = context
  const [document = ''] = args
  if (textOption(options, 'at') !== undefined)
    return await (await import('./history.js')).showFormer(context, args, options)
  if (partOption(options) !== null) throw new NodeError('USAGE', '--type and --root need --at here')
  const one = await api().call('documents.show', { document })
  if (output.json) output.object('doc-detail@1', one)
  else await printDocument(output, one)
  return EXIT.ok
}

async function printDocument(output: Output, one: DocumentDetail): Promise<void> {
  noteWarning(output, one)
  output.print(`${output.paint('bold', safeName(one.name, DOCUMENT_NAME))}   ${one.id}`)
  printFacts(output, [
    ['created', `by ${one.creator.name}, ${agoText(one.createdAt, Date.now())}`],
    ['size', `${bytesText(one.bytes)} in ${plural(one.blocks, 'block')}`],
    ['kept here', keptText(one)],
    ...(one.left ?? []).map(
      ({ node, streams, reason }) => ['left out', `${plural(streams, 'stream')} of ${node.name}: ${reason}`] as const
    ),
    ['you may', `${mayText(one)}${one.may.restrict ? ', grant access to others' : ''}`],
    ...accessFacts(one.access)
  ])
  const rows = one.streams.map((stream): Cell[] => [
    stream.node.name,
    String(stream.blocks),
    bytesText(stream.bytes),
    stateText(stream)
  ])
  if (rows.length > 0) await printTable(output, ['WRITER', 'BLOCKS', 'SIZE', 'STATE'], rows)
}

function stateText({ mayWrite, stopped }: DocumentWriter): string {
  if (stopped !== null) return `stopped: ${stopped}`
  return mayWrite ? 'writes' : 'may not write any more'
}

/** `doc rm <doc>`: this node keeps it no longer; with `--everywhere` it is removed from the mesh. */
export const removeDocument: Action = async ({ output, api }, [document = ''], options) => {
  const one = await api().call('documents.show', { document })
  const { name, may } = one
  const isAsked = !isSet(options, 'yes') && !output.json && canAsk(output)
  if (isSet(options, 'everywhere')) return await removeEverywhere({ output, api }, one, isAsked)
  if (isAsked)
    output.note(`What ${may.write ? 'you wrote into' : 'is here of'} ${shown(name)} and nobody else has is lost.`)
  if (isAsked && !(await confirm('keep it here no longer?')))
    throw new NodeError('CANCELED', 'nothing was removed', { next: [] })
  const gone = await api().call('documents.forget', { document })
  if (output.json) output.object('doc-removed@1', gone)
  else output.print(`${shown(gone.name)} is removed from this node: ${bytesText(gone.bytes)} freed`)
  return EXIT.ok
}

async function removeEverywhere(
  { output, api }: Pick<CommandContext, 'output' | 'api'>,
  { id, name, bytes }: DocumentDetail,
  isAsked: boolean
): Promise<number> {
  if (isAsked) output.note(`${shown(name)} is lost on all nodes, and its name stays taken.`)
  if (isAsked && !(await confirm('remove it from the mesh?')))
    throw new NodeError('CANCELED', 'nothing was removed', { next: [] })
  await api().call('documents.remove', { document: id })
  if (output.json) output.object('doc-removed@1', { id, name, bytes, everywhere: true })
  else output.print(`${shown(name)} is removed from the mesh; each node removes its blocks within minutes`)
  return EXIT.ok
}
