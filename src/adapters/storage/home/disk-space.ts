import fs from 'node:fs'
import path from 'node:path'

/** Free bytes of a disk below which it counts as full: a store needs some to write anything at all. */
export const FULL_BYTES = 1024 * 1024

/** Free bytes below which a disk is soon full. */
export const LOW_BYTES = 16 * 1024 * 1024

/** Is the disk of a path, or of its nearest existing parent, full? False when unknown. */
export function isDiskFull(place: string): boolean {
  const free = freeBytes(place)
  return free !== null && free < FULL_BYTES
}

/** Free bytes on the disk of a path, or of its nearest existing parent; null when unknown. */
export function freeBytes(place: string): number | null {
  try {
    const { bavail, bsize } = fs.statfsSync(place)
    return bavail * bsize
  } catch {
    const above = path.dirname(place)
    return above === place ? null : freeBytes(above)
  }
}
