import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import fs from 'node:fs/promises'
import { readIfThere } from './atomic-file.js'
import { storeError } from './store-errors.js'

/** Characters of an error that are written down. */
const MAX_CHARACTERS = 1024

/**
 * Writes down, at once, that the process that holds a home ends by an error of its own; the file is 0600. Never throws:
 * a process that ends by an error may fail at this too.
 */
export function writeFaultNote(file: string, reason: string): void {
  try {
    const handle = openSync(file, 'w', 0o600)
    try {
      writeSync(handle, `${reason.slice(0, MAX_CHARACTERS)}\n`)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
  } catch {
    // Its next start then takes this end for one of another kind.
  }
}

/**
 * The error by which the last process ended, '' where it got not so far as to write it; null for none.
 * @throws NodeError NO_PERMISSION
 */
export async function readFaultNote(file: string): Promise<string | null> {
  const text = await readIfThere(file).catch((error: unknown) => Promise.reject(storeError(error, file)))
  return text === null ? null : text.slice(0, MAX_CHARACTERS).trim()
}

/** Forgets the error. @throws NodeError NO_PERMISSION */
export async function removeFaultNote(file: string): Promise<void> {
  await fs.rm(file, { force: true }).catch((error: unknown) => Promise.reject(storeError(error, file)))
}
