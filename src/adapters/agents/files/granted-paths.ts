import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import { assertInPlace } from './open-place.js'

/** Directory in a granted directory for unfinished uploads. No path leads into it. */
export const PARTIAL_DIR = '.a2a-node-partial'

/** Bytes of a file name, at most. */
const MAX_NAME_BYTES = 255

/** Config keys with directories of the starter agent `files`. */
type GrantKey = 'agents.grants' | 'agents.writeGrants'

/** The place of a file that need not exist. */
export interface FilePlace {
  /** The nearest granted directory that contains it. */
  readonly root: string
  /** Its real directory. */
  readonly dir: string
  /** Its name: no control characters, neither `.` nor `..`. */
  readonly name: string
}

/**
 * The directories that the config grants to the starter agent `files`. Every path is resolved to its real place
 * first, so neither `..` nor a symbolic link leads out of them.
 */
export class GrantedPaths {
  readonly #grants: readonly string[]
  readonly #key: GrantKey

  /** `grants`: directories of the config key `key`. */
  constructor(grants: readonly string[], key: GrantKey = 'agents.grants') {
    this.#grants = grants
    this.#key = key
  }

  /**
   * The real directories granted, without those that do not exist.
   * @throws NodeError FORBIDDEN when there is none
   */
  async directories(): Promise<readonly string[]> {
    const found = await Promise.all(this.#grants.map((dir) => fs.realpath(dir).catch(() => null)))
    const real = found.filter((dir) => dir !== null)
    if (real.length > 0) return real
    throw new NodeError(
      'FORBIDDEN',
      `no directory is granted to the agent files on this node; its owner names them in the config key ${this.#key}`,
      { data: { key: this.#key } }
    )
  }

  /**
   * Resolves the real path of a file inside a granted directory. An absolute path must lie in one; a relative path is
   * tried in each, in order.
   * @throws NodeError FORBIDDEN, also for missing files, so that nothing outside can be probed
   */
  async resolve(wanted: string, kind: 'file' | 'directory' = 'file'): Promise<string> {
    const directories = await this.directories()
    const candidates = path.isAbsolute(wanted) ? [wanted] : directories.map((dir) => path.join(dir, wanted))
    for (const candidate of wanted.includes('\0') ? [] : candidates) {
      const real = await fs.realpath(candidate).catch(() => null)
      if (real !== null && directories.some((dir) => isInside(real, dir))) return real
    }
    throw this.#notThere(kind)
  }

  /**
   * The place of a file to write. Its directory must exist, in a granted one; the file itself may be missing.
   * @throws NodeError FORBIDDEN for any other place, INVALID_INPUT for a name that no file gets
   */
  async place(wanted: string): Promise<FilePlace> {
    const name = path.basename(wanted)
    if (!isFileName(name) || wanted.endsWith('/'))
      throw new NodeError('INVALID_INPUT', 'the path ends in no file name, or in one with control characters')
    const dir = await this.resolve(path.dirname(wanted), 'directory')
    // The nearest one: the outer directory may be on another disk, from which no file is moved into this one.
    const roots = (await this.directories()).filter((one) => isInside(dir, one))
    const root = roots.sort((a, b) => b.length - a.length)[0]
    if (root === undefined) throw this.#notThere('directory')
    return { root, dir, name }
  }

  #notThere(kind: 'file' | 'directory'): NodeError {
    return new NodeError(
      'FORBIDDEN',
      `no such ${kind} in the directories that the config key ${this.#key} of this node names`
    )
  }

  /** Opens a regular file for reading; the caller closes it. @throws NodeError FORBIDDEN */
  async open(wanted: string): Promise<{ readonly file: fs.FileHandle; readonly path: string; readonly size: number }> {
    const real = await this.resolve(wanted)
    // O_NONBLOCK: opening a pipe must not wait for its writer. O_NOFOLLOW: a link put there meanwhile is not followed.
    const file = await fs.open(real, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
    try {
      const stat = await file.stat()
      if (!stat.isFile()) throw new NodeError('FORBIDDEN', 'only regular files can be read')
      await assertInPlace(file, real)
      return { file, path: real, size: stat.size }
    } catch (error) {
      await file.close()
      throw error
    }
  }
}

/** May a file get this name? */
function isFileName(name: string): boolean {
  const isPlain = shown(name, Number.POSITIVE_INFINITY) === name && name.isWellFormed()
  return (
    isPlain && !['', '.', '..', PARTIAL_DIR].includes(name.toLowerCase()) && Buffer.byteLength(name) <= MAX_NAME_BYTES
  )
}

function isInside(real: string, dir: string): boolean {
  const relative = path.relative(dir, real)
  if (relative.split(path.sep).includes(PARTIAL_DIR)) return false
  return relative === '' || (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}
