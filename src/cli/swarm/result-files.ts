import { mkdir, readdir, rmdir, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type ErrorCode, NodeError } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { shellWord, shown } from '../../kit/text.js'
import type { SwarmResults } from '../../ports/swarm-api.js'
import { jsonText } from '../terminal/output.js'

/** Characters of an item in the name of its file. */
const NAME_MAX = 40
/** Names that are tried for another directory. */
const OTHERS_MAX = 99
/** The file that lists all results. */
const INDEX = 'results.json'

const CODES: Readonly<Record<string, ErrorCode>> = {
  EEXIST: 'FILE_EXISTS',
  ENOTDIR: 'FILE_EXISTS',
  EISDIR: 'FILE_EXISTS',
  EACCES: 'NO_PERMISSION',
  EPERM: 'NO_PERMISSION',
  EROFS: 'NO_PERMISSION',
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_FULL'
}

type ResultRow = SwarmResults['results'][number]

/** The directory of `--results files`, empty and ready before the swarm begins. */
export class ResultFiles {
  /** Its absolute path. */
  readonly directory: string
  readonly #made: string | undefined

  private constructor(directory: string, made: string | undefined) {
    this.directory = directory
    this.#made = made
  }

  /**
   * Makes the directory, or takes an empty one.
   * @throws NodeError FILE_EXISTS for a file, or a directory with content; NO_PERMISSION, DISK_FULL
   */
  static async open(directory: string): Promise<ResultFiles> {
    const at = path.resolve(directory)
    try {
      const made = await mkdir(at, { recursive: true })
      if ((await readdir(at)).length === 0) return new ResultFiles(at, made)
    } catch (error) {
      throw unusable(directory, error)
    }
    throw new NodeError('FILE_EXISTS', `the directory ${shown(directory)} is not empty`, {
      next: await freeSteps(directory)
    })
  }

  /** Removes the directories that {@link ResultFiles.open} made and that are still empty. Never rejects. */
  async discard(): Promise<void> {
    if (this.#made === undefined) return
    for (let at = this.directory; at.startsWith(this.#made); at = path.dirname(at)) {
      const isRemoved = await rmdir(at).then(
        () => true,
        () => false
      )
      if (!isRemoved) return
    }
  }

  /**
   * Writes a file for each result: `.txt` of a text, `.bin` of bytes, `.json` of other values, `.error.json` of an
   * error. `results.json`, written last, lists all with their files. Returns the number of results.
   * @throws NodeError DISK_FULL, NO_PERMISSION, FILE_EXISTS
   */
  async write(found: SwarmResults): Promise<number> {
    const { results } = found
    const digits = String(results.length).length
    try {
      const listed: object[] = []
      for (const [index, one] of results.entries()) {
        const { result: _result, ...row } = one
        const { end, contents } = contentsOf(one)
        const file = `${String(index + 1).padStart(digits, '0')}-${fileName(one.item)}${end}`
        await this.#put(file, contents)
        listed.push({ ...row, file })
      }
      const index = { schema: 'a2a-node/swarm-result-files@1', ...found, results: listed }
      await this.#put(INDEX, `${jsonText(index)}\n`)
      return results.length
    } catch (error) {
      throw unusable(this.directory, error, [`a2a-node swarm results ${found.id}`])
    }
  }

  async #put(file: string, contents: string | Uint8Array): Promise<void> {
    await writeFile(path.join(this.directory, file), contents, { flag: 'wx' })
  }
}

function contentsOf({ result, error }: ResultRow): { readonly end: string; readonly contents: string | Uint8Array } {
  if (error !== null) return { end: '.error.json', contents: `${jsonText(error)}\n` }
  if (typeof result === 'string') return { end: '.txt', contents: result }
  if (result instanceof Uint8Array) return { end: '.bin', contents: result }
  return { end: '.json', contents: `${jsonText(result)}\n` }
}

/** An item as a part of a file name: letters, digits, `_`, `-` and dots inside. */
function fileName(item: string): string {
  const name = item.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_').replaceAll(/^[._-]+|[._-]+$/g, '')
  return (
    [...name]
      .slice(-NAME_MAX)
      .join('')
      .replace(/^[._-]+/, '') || 'item'
  )
}

/** The option with a directory beside the given one that does not exist; none when many exist. */
async function freeSteps(directory: string): Promise<readonly string[]> {
  for (let number = 2; number <= OTHERS_MAX; number++) {
    const other = `${directory.replace(/\/+$/, '')}-${number}`
    const isFree = await stat(other).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT'
    )
    if (isFree) return [`--results ${shellWord(`files=${other}`)}`]
  }
  return []
}

function unusable(directory: string, error: unknown, next: readonly string[] = []): NodeError {
  const code = CODES[(error as NodeJS.ErrnoException).code ?? ''] ?? 'USAGE'
  const reason = code === 'FILE_EXISTS' ? 'a file of this name exists' : fileReason(error)
  const message = `the results cannot be written to ${shown(directory)}: ${reason}`
  return new NodeError(code, message, { cause: error, next })
}
