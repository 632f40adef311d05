import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from './store-errors.js'

/**
 * Replaces a file so that after a crash either the old or the new content is there: writes aside, fsyncs, renames,
 * fsyncs the directory. The file is 0600. One writer a file at a time.
 */
export async function replaceFile(file: string, text: string): Promise<void> {
  await putInPlace(file, text)
  await syncDir(path.dirname(file))
}

/** As {@link replaceFile}, but the new content survives a power cut only after a {@link syncDir} of the directory. */
export async function putInPlace(file: string, text: string): Promise<void> {
  const aside = `${file}.tmp`
  try {
    const handle = await fs.open(aside, 'w', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await fs.rename(aside, file)
  } catch (error) {
    // The caller must get the first error.
    await fs.rm(aside, { force: true }).catch(() => {})
    throw error
  }
}

/**
 * The content of a file, or null when there is none.
 * @throws Error of the file system, or for a pipe, a socket or a device
 */
export async function readIfThere(file: string): Promise<string | null> {
  // Opening a pipe without a writer would wait.
  const handle = await fs.open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
  if (handle === null) return null
  try {
    const stats = await handle.stat()
    if (!stats.isFile() && !stats.isDirectory()) throw new Error(`${file} is no regular file`)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

/** Makes a directory's names (new, renamed, removed files) survive a power cut. */
export async function syncDir(dir: string): Promise<void> {
  const handle = await fs.open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
