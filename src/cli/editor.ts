import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'

/** Where no variable names one, and a person sits at a terminal. */
const USUAL_EDITOR = 'vi'

/** The command line of the editor of a person. @throws NodeError USAGE when none is named and there is no terminal */
export function editorOf(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): string {
  const named = [env['VISUAL'], env['EDITOR']].find((one) => one !== undefined && one.trim() !== '')
  if (named !== undefined) return named
  if (isTerminal) return USUAL_EDITOR
  throw new NodeError('USAGE', 'there is no terminal to edit in: set EDITOR to a command that changes the file it is given', {
    next: ['EDITOR=<command> a2a-node doc edit <doc>']
  })
}

/** A file that a person edits: 0600, in a directory (0700) of its own that goes with it. */
export interface EditedFile {
  readonly file: string
  /** What it holds now. @throws NodeError USAGE when it is gone or is no UTF-8 */
  read(): Promise<string>
  remove(): Promise<void>
}

/** Makes a file of that name in a directory of its own below `parent`. */
export async function editedFile(parent: string, name: string, text: string): Promise<EditedFile> {
  const directory = await fs.mkdtemp(path.join(parent, 'a2a-node-doc-'))
  const file = path.join(directory, name)
  await fs.writeFile(file, text, { mode: 0o600, flag: 'wx' })
  return {
    file,
    async read() {
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await fs.readFile(file))
      } catch (cause) {
        throw new NodeError('USAGE', `${file} is gone, or is no UTF-8`, { cause })
      }
    },
    remove: async () => await fs.rm(directory, { recursive: true, force: true })
  }
}

/** Runs an editor on a file until it ends. Its command line may have arguments, as a shell reads them. @throws NodeError TASK_FAILED */
export async function runEditor(editor: string, file: string): Promise<void> {
  // Ctrl-C is meant for the editor.
  const ignore = (): void => {}
  process.on('SIGINT', ignore)
  try {
    const code = await new Promise<number>((resolve, reject) => {
      // What an editor says must not be taken for data of this command.
      const stdout = process.stdout.isTTY ? 'inherit' : 2
      const child = spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, file], { stdio: ['inherit', stdout, 'inherit'] })
      child.once('error', reject)
      child.once('close', (exit, signal) => resolve(exit ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    })
    if (code !== 0)
      throw new NodeError('TASK_FAILED', `the editor (${shown(editor)}) ended with ${code}: nothing was changed`, { next: [] })
  } finally {
    process.off('SIGINT', ignore)
  }
}
