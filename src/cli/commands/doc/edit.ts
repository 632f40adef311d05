import os from 'node:os'
import { asNodeError, NodeError } from '../../../kit/errors.js'
import { shellWord, shown } from '../../../kit/text.js'
import type { DocumentReading } from '../../../ports/document-api.js'
import type { Action } from '../../context.js'
import { canAsk } from '../../terminal/confirm.js'
import { partText, readPart, refuseEmptying, wholeEdit } from '../../documents/part.js'
import { type EditedFile, editedFile, type Editor, editorOf, runEditor } from '../../editor.js'
import { EXIT } from '../../exit-codes.js'
import { isSet } from '../../options.js'
import type { Output } from '../../terminal/output.js'
import { utf8Text } from '../../utf8-text.js'

/** `doc edit <doc>`: opens it in an editor, and writes the difference to the opened version. */
export const editDocument: Action = async ({ output, api, env }, [document = ''], options) => {
  const editor = editorOf(env, canAsk(output))
  if (editor === null) throw noEditor(document)
  const part = await readPart(api(), document, options)
  const { DocumentFork } = await import('../../../adapters/control/document-fork.js')
  const fork = await DocumentFork.open(api(), part.id)
  try {
    const reading = { ...part, value: fork.read(part.type, part.root) }
    const again = output.hint(setCommand(part))
    const isMeant = isSet(options, 'allowEmpty')
    const save = async (text: string): Promise<boolean> => {
      if (!isMeant) refuseEmptying(reading, text, `a2a-node doc edit ${shellWord(part.name)} --allow-empty`)
      return await fork.save(part.root, wholeEdit(part, text))
    }
    return printResult(output, part, await edit({ editor, reading, again }, save))
  } finally {
    fork.close()
  }
}

/**
 * Has a part edited and saved; false when nothing was changed. Where that fails, what was typed stays in its file, and
 * the error says so.
 */
async function edit(asked: Edit, save: (text: string) => Promise<boolean>): Promise<boolean> {
  const { editor, reading, again } = asked
  const before = partText(reading)
  const file = await editedFile(os.tmpdir(), reading.type === 'text' ? 'document.txt' : 'document.json', before)
  try {
    await runEditor(editor, file.file)
    const text = await typedIn(file, before, again)
    const changed = text !== null && (await save(text))
    await file.remove()
    return changed
  } catch (error) {
    throw await failed(asNodeError(error), file, asked)
  }
}

/** The edited text; null when unchanged. @throws NodeError USAGE when it is no text */
async function typedIn(file: EditedFile, before: string, again: string): Promise<string | null> {
  const bytes = await file.read()
  if (bytes === null) throw new NodeError('USAGE', 'the editor left no file: the document is as it was')
  const after = utf8Text(bytes, { name: 'what was typed', again })
  if (after === before) return null
  // Many editors end the last line whether or not it was ended.
  const text = !before.endsWith('\n') && after.endsWith('\n') ? after.slice(0, -1) : after
  return text === before ? null : text
}

interface Edit {
  readonly editor: Editor
  readonly reading: DocumentReading
  /** The command that sets the same from standard input. */
  readonly again: string
}

/** The error with the path of the kept text, if there is one, and the next steps for it. */
async function failed(error: NodeError, file: EditedFile, { editor, reading, again }: Edit): Promise<NodeError> {
  const { code, message, data, cause } = error
  const bytes = await file.read()
  const isOfEditor = code === 'TASK_FAILED' || bytes === null
  const steps = isOfEditor ? [`${editor.variable}=<command> a2a-node doc edit ${shellWord(reading.name)}`] : error.next
  if (bytes === null || bytes.every(isBlank) || Buffer.from(partText(reading)).equals(bytes)) {
    await file.remove()
    return new NodeError(code, message, { data, next: steps, cause })
  }
  const place = shellWord(file.file)
  // A step that takes a file takes this one; else it can be set as it is, or mended.
  const own = steps.filter((step) => step !== 'a2a-node --help').map((step) => step.replace("'<file>'", () => place))
  const next = own.some((step) => step.includes(place)) ? own : [`${again} < ${place}`, ...own]
  return new NodeError(code, `${message}; your text is saved in ${file.file}`, { data, next, cause })
}

/** True for spaces, tabs and ends of lines. */
function isBlank(byte: number): boolean {
  return byte === 32 || (byte >= 9 && byte <= 13)
}

function setCommand({ name, type, root }: DocumentReading): string {
  const part =
    type === 'text' && root === type ? '' : ` --type ${type}${root === type ? '' : ` --root ${shellWord(root)}`}`
  return `a2a-node doc set ${shellWord(name)} -${part}`
}

function noEditor(document: string): NodeError {
  const message = 'there is no terminal for the editor: set EDITOR to a command that changes the given file'
  return new NodeError('USAGE', message, { next: [`EDITOR=<command> a2a-node doc edit ${shellWord(document)}`] })
}

function printResult(output: Output, { id, name, type, root }: DocumentReading, changed: boolean): number {
  if (output.json) output.object('doc-set@1', { id, name, type, root, changed, created: false })
  else output.note(`${shown(name)} ${changed ? 'is changed' : 'is as it was: nothing was changed'}`)
  return EXIT.ok
}
