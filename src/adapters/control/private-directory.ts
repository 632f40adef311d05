import { mkdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { makeDirectories } from '../../kit/directories.js'

/**
 * Makes a directory and those above it, each for this user alone (0700); one that is there stays as it is. Rejects as
 * mkdir does.
 */
export async function makePrivateDirectory(dir: string): Promise<void> {
  await makeDirectories(dir, {
    mkdir: (one) => mkdir(one, { mode: 0o700 }),
    isDirectory: (one) =>
      stat(one).then(
        (stats) => stats.isDirectory(),
        () => false
      ),
    parent: path.dirname
  })
}
