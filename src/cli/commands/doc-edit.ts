import os from 'node:os'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { DocumentReading } from '../../ports/document-api.js'
import type { Action } from '../context.js'
import { canAsk } from '../confirm.js'
import { partText, readPart, wholeEdit } from '../document-part.js'
import { editedFile, editorOf, runEditor } from '../editor.js'
import { EXIT } from '../exit-codes.js'
import type { Output } from '../output.js'

/** `doc edit <doc>`: opens it in an editor, and writes the difference to what it was when it was opened. */
export const editDocument: Action = async ({ output, api, env }, [document = ''], options) => {
  const editor = editorOf(env, canAsk(output))
  const part = await readPart(api(), document, options)
  const { DocumentFork } = await import('../../adapters/control/document-fork.js')
  const fork = await DocumentFork.open(api(), part.id)
  try {
    const value = fork.read(part.type, part.root)
    const before = partText({ type: part.type, value })
    const after = await edited(editor, { ...part, value }, before)
    const changed = after !== null && (await saved(after, async (text) => await fork.save(part.root, wholeEdit(part, text))))
    return told(output, part, changed)
  } finally {
    fork.close()
  }
}

/** A text that a person typed, and where it is kept until it is written. */
interface Typed {
  readonly text: string
  readonly file: string
  remove(): Promise<void>
}

/** Has it edited; null when nothing was changed. */
async function edited(editor: string, { type }: DocumentReading, before: string): Promise<Typed | null> {
  const file = await editedFile(os.tmpdir(), type === 'text' ? 'document.txt' : 'document.json', before)
  await runEditor(editor, file.file).catch(async (error: unknown) => {
    await file.remove()
    throw error
  })
  const after = await file.read()
  // Many editors end the last line whether or not it was ended.
  const text = !before.endsWith('\n') && after.endsWith('\n') ? after.slice(0, -1) : after
  if (text !== before && after !== before) return { text, file: file.file, remove: file.remove }
  await file.remove()
  return null
}

/** Writes what was typed; where that fails it stays in its file. */
async function saved({ text, file, remove }: Typed, save: (text: string) => Promise<boolean>): Promise<boolean> {
  try {
    const changed = await save(text)
    await remove()
    return changed
  } catch (error) {
    const { code, message, data, next } = asNodeError(error)
    throw new NodeError(code, `${message}; what you typed is kept in ${file}`, { data, next, cause: error })
  }
}

function told(output: Output, { id, name, type, root }: DocumentReading, changed: boolean): number {
  if (output.json) output.object('doc-set@1', { id, name, type, root, changed, created: false })
  else output.note(`${shown(name)} ${changed ? 'is changed' : 'is as it was: nothing was changed'}`)
  return EXIT.ok
}
