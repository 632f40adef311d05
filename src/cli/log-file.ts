import { copyFileSync, statSync, truncateSync } from 'node:fs'

/** Bytes of the log of a background node before it is begun anew; the one before is kept beside it. */
const LOG_MAX_BYTES = 16 * 1024 * 1024
/** How often its size is looked at, in milliseconds. */
const LOOK_MS = 10_000

/**
 * Bounds the log file that this process has open for its output. Now and every ten seconds, a file over 16 MiB is copied to `<file>.1` and
 * emptied. The timer does not keep the process alive.
 */
export function boundLog(file: string): void {
  const look = (): void => {
    // A log that cannot be turned over must not stop the node that writes it.
    try {
      if (statSync(file).size > LOG_MAX_BYTES) turnOver(file)
    } catch {}
  }
  look()
  setInterval(look, LOOK_MS).unref()
}

/** The open file stays the one that is written to, so its content is copied; without room for that it is dropped. */
function turnOver(file: string): void {
  try {
    copyFileSync(file, `${file}.1`)
  } finally {
    truncateSync(file)
  }
}
