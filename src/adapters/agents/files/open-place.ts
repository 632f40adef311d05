import fs from 'node:fs/promises'
import { NodeError } from '../../../kit/errors.js'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = fs.constants
const isLinux = process.platform === 'linux'

/**
 * Asks where an open file or directory really is: a directory on the way may have been replaced by a link between
 * looking and opening.
 * @throws NodeError FORBIDDEN when it is not at its real path
 */
export async function assertInPlace({ fd }: fs.FileHandle, real: string): Promise<void> {
  const now = isLinux ? await fs.readlink(`/proc/self/fd/${fd}`) : await fs.realpath(real)
  if (now !== real) throw new NodeError('FORBIDDEN', 'the place was moved while it was opened')
}

/**
 * Calls back with a path to a directory that stays open: on Linux it leads into the same directory when a link is put
 * in its place. `real`: its real path.
 * @throws NodeError FORBIDDEN when it is not there, errors of the file system for a link or no directory
 */
export async function inDirectory<T>(
  real: string,
  run: (base: string, handle: fs.FileHandle) => Promise<T>
): Promise<T> {
  const handle = await fs.open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    await assertInPlace(handle, real)
    return await run(isLinux ? `/proc/self/fd/${handle.fd}` : real, handle)
  } finally {
    await handle.close()
  }
}
