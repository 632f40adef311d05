import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf, storeError } from './store-errors.js'

/**
 * Repairs a Corestore that was killed during its first opening: an empty `CORESTORE` file without a `db` beside it is
 * removed. Call it only while holding the lock of the home: a store that another process just opens looks the same for
 * a moment.
 * @returns whether a file was removed
 */
export async function healStore(dir: string): Promise<boolean> {
  const marker = path.join(dir, 'CORESTORE')
  try {
    if ((await sizeOf(marker)) !== 0 || (await sizeOf(path.join(dir, 'db'))) !== null) return false
    await fs.rm(marker)
    return true
  } catch (error) {
    throw storeError(error, dir)
  }
}

async function sizeOf(file: string): Promise<number | null> {
  try {
    return (await fs.stat(file)).size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}
