import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'

/**
 * The directories that the config grants to the starter agent `files`. Every path is resolved to its real place
 * first, so neither `..` nor a symbolic link leads out of them.
 */
export class GrantedPaths {
  readonly #grants: readonly string[]

  /** `grants`: directories of the config key `agents.grants`. */
  constructor(grants: readonly string[]) {
    this.#grants = grants
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
      'no directory is granted to the agent files on this node; its owner names them in the config key agents.grants'
    )
  }

  /**
   * Resolves the real path of a file inside a granted directory. An absolute path must lie in one; a relative path is
   * tried in each, in order.
   * @throws NodeError FORBIDDEN, also for missing files, so that nothing outside can be probed
   */
  async resolve(wanted: string): Promise<string> {
    const directories = await this.directories()
    const candidates = path.isAbsolute(wanted) ? [wanted] : directories.map((dir) => path.join(dir, wanted))
    for (const candidate of wanted.includes('\0') ? [] : candidates) {
      const real = await fs.realpath(candidate).catch(() => null)
      if (real !== null && directories.some((dir) => isInside(real, dir))) return real
    }
    throw new NodeError(
      'FORBIDDEN',
      'no such file in the directories that the config key agents.grants of this node names'
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
      await this.#confirm(file, real)
      return { file, path: real, size: stat.size }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** A directory on the way may have been replaced between looking and opening: ask where the open file really is. */
  async #confirm(file: fs.FileHandle, real: string): Promise<void> {
    const now = process.platform === 'linux' ? await fs.readlink(`/proc/self/fd/${file.fd}`) : await fs.realpath(real)
    if (now !== real) throw new NodeError('FORBIDDEN', 'the file was moved while it was opened')
  }
}

function isInside(real: string, dir: string): boolean {
  const relative = path.relative(dir, real)
  return relative === '' || (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}
