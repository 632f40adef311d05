import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'

/** Where no variable names one, and a person sits at a terminal. */
const USUAL_EDITOR = 'vi'

/** The editor of a person. */
export interface Editor {
  /** Its command line, as a shell reads it. */
  readonly command: string
  /** The variable that names it, or would. */
  readonly variable: 'VISUAL' | 'EDITOR'
}

/** The editor of a person; null when none is named and there is no terminal. */
export function editorOf(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): Editor | null {
  for (const variable of ['VISUAL', 'EDITOR'] as const) {
    const command = env[variable] ?? ''
    if (command.trim() !== '') return { command, variable }
  }
  return isTerminal ? { command: USUAL_EDITOR, variable: 'EDITOR' } : null
}

/** A file that a person edits: 0600, in a directory (0700) of its own that goes with it. */
export interface EditedFile {
  readonly file: string
  /** Its current content; null when it is gone. */
  read(): Promise<Uint8Array | null>
  remove(): Promise<void>
}

/** Makes a file of that name in a directory of its own below `parent`. */
export async function editedFile(parent: string, name: string, text: string): Promise<EditedFile> {
  const directory = await fs.mkdtemp(path.join(parent, 'a2a-node-doc-'))
  const file = path.join(directory, name)
  await fs.writeFile(file, text, { mode: 0o600, flag: 'wx' })
  return {
    file,
    read: async () => await fs.readFile(file).catch(() => null),
    remove: async () => await fs.rm(directory, { recursive: true, force: true })
  }
}

/** Runs an editor on a file until it ends. @throws NodeError TASK_FAILED when it does not end with 0 */
export async function runEditor({ command }: Editor, file: string): Promise<void> {
  // Ctrl-C is meant for the editor.
  const ignore = (): void => {}
  process.on('SIGINT', ignore)
  try {
    const code = await new Promise<number>((resolve, reject) => {
      // Output of the editor must not mix with data of this command.
      const stdout = process.stdout.isTTY ? 'inherit' : 2
      const child = spawn('/bin/sh', ['-c', `${command} "$@"`, command, file], {
        stdio: ['inherit', stdout, 'inherit']
      })
      child.once('error', reject)
      child.once('close', (exit, signal) => resolve(exit ?? 128 + (signal === null ? 0 : constants.signals[signal])))
    })
    if (code !== 0)
      throw new NodeError('TASK_FAILED', `the editor (${shown(command)}) ended with ${code}: the document is as it was`)
  } finally {
    process.off('SIGINT', ignore)
  }
}
