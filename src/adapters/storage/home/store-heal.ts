import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf, storeError } from './store-errors.js'

/**
 * Mends a Corestore that was killed during its very first opening: an empty `CORESTORE` file with no `db` beside it makes the
 * store unopenable and is removed. Call it only while holding the lock of the home: a store that another process opens for
 * the first time looks the same for a moment.
 * @returns whether something was mended
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
