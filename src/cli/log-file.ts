import { closeSync, copyFileSync, fstatSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'

/** Bytes of the log of a background node before it is begun anew; the one before is kept beside it. */
const LOG_MAX_BYTES = 16 * 1024 * 1024
/** How often its size is looked at, in milliseconds. */
const LOOK_MS = 10_000

/**
 * Bounds the log file that this process has open for its output. Now and every ten seconds, a file over 16 MiB is
 * copied to `<file>.1` and emptied. The timer does not keep the process alive.
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

/**
 * Writes the output of this process to the file of that name from now on, when another one has its place, as after a
 * rotation. The file is made when it is gone. Best effort: without it the output stays where it is.
 */
export function reopenLog(file: string): void {
  try {
    if (isSameFile(file, reopened ?? process.stderr.fd)) return
    const fd = openSync(file, 'a', 0o600)
    if (reopened !== null) closeSync(reopened)
    reopened = fd
    for (const stream of [process.stdout, process.stderr]) stream.write = writerTo
  } catch {}
}

/** Descriptor of the log file in use; null while it is the one of the start. */
let reopened: number | null = null

function isSameFile(file: string, fd: number): boolean {
  try {
    const [there, open] = [statSync(file), fstatSync(fd)]
    return there.dev === open.dev && there.ino === open.ino
  } catch {
    return false
  }
}

const writerTo: typeof process.stderr.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
  // A log that takes nothing, as on a full disk, must not stop the node that writes it.
  try {
    if (reopened !== null) writeSync(reopened, typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  } catch {}
  const done = rest.find((one) => typeof one === 'function')
  if (done !== undefined) queueMicrotask(() => (done as () => void)())
  return true
}

/** The open file stays the one that is written to, so its content is copied; without room for that it is dropped. */
function turnOver(file: string): void {
  try {
    copyFileSync(file, `${file}.1`)
  } finally {
    truncateSync(file)
  }
}
