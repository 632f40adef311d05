import { closeSync, copyFileSync, fstatSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'

/** Bytes of the log of a background node before it is begun anew; the one before is kept beside it. */
const LOG_MAX_BYTES = 16 * 1024 * 1024
/** How often its size and place are checked, in milliseconds. */
const LOOK_MS = 10_000
/** Bytes of output that wait for a log that takes nothing; older output is dropped. */
const WAITING_MAX_BYTES = 64 * 1024

/** The output of this process, in a file. */
export class LogFile {
  /** Name for problems; null for a file whose name is unknown, as after `2> file`. */
  readonly #file: string | null
  readonly #waiting: Buffer[] = []
  #fd: number
  /** Was the descriptor opened here? */
  #isOwn = false
  #error: unknown = null

  private constructor(file: string | null, fd: number) {
    this.#file = file
    this.#fd = fd
  }

  /**
   * Takes over the output of this process, which its parent led to `file`, and writes it to the file that later has
   * that name, as after a rotation. Every ten seconds, one over 16 MiB is copied to `<file>.1` and emptied, and a
   * removed one is made again. The timer does not keep the process alive. Output that goes elsewhere stays there: null.
   */
  static ofOutput(file: string): LogFile | null {
    const isIn = isSameFile(file, process.stderr.fd)
    const log = new LogFile(isIn ? file : null, process.stderr.fd)
    if (isIn) for (const stream of [process.stdout, process.stderr]) stream.write = log.#writer
    const look = (): void => {
      log.reopen()
      bound(file)
    }
    look()
    setInterval(look, LOOK_MS).unref()
    return isIn ? log : null
  }

  /** As {@link LogFile.ofOutput}, for stderr of a process in the foreground; null for a terminal or a pipe. */
  static ofStderr(): LogFile | null {
    const { fd, isTTY } = process.stderr
    try {
      const stats = fstatSync(fd)
      if (isTTY || !(stats.isFile() || stats.isCharacterDevice())) return null
    } catch {
      return null
    }
    const log = new LogFile(null, fd)
    process.stderr.write = log.#writer
    return log
  }

  /** The file and its error, while it takes nothing; null when it works. A removed file is made again first. */
  fault(): { readonly file: string; readonly error: unknown } | null {
    this.#try(() => this.#reopen())
    return this.#error === null ? null : { file: this.#file ?? 'the file of stderr', error: this.#error }
  }

  /** Takes the file that now has the name of the log, and makes it when it is gone. Never throws. */
  reopen(): void {
    this.#try(() => this.#reopen())
  }

  readonly #writer: typeof process.stderr.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
    this.#waiting.push(Buffer.from(chunk))
    this.#try(() => {
      if (this.#error !== null) this.#reopen()
    })
    const done = rest.find((one) => typeof one === 'function')
    if (done !== undefined) queueMicrotask(() => (done as () => void)())
    return true
  }

  /** A log that takes nothing must not stop the node that writes it. */
  #try(before: () => void): void {
    try {
      before()
      this.#flush()
      this.#error = null
    } catch (error) {
      this.#error = error
      let bytes = this.#waiting.reduce((sum, one) => sum + one.byteLength, 0)
      while (bytes > WAITING_MAX_BYTES) bytes -= this.#waiting.shift()?.byteLength ?? 0
    }
  }

  #flush(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const written = writeSync(this.#fd, first)
      if (written < first.byteLength) this.#waiting[0] = first.subarray(written)
      else this.#waiting.shift()
    }
  }

  #reopen(): void {
    if (this.#file === null || isSameFile(this.#file, this.#fd)) return
    const fd = openSync(this.#file, 'a', 0o600)
    if (this.#isOwn) closeSync(this.#fd)
    this.#fd = fd
    this.#isOwn = true
  }
}

function isSameFile(file: string, fd: number): boolean {
  try {
    const [there, open] = [statSync(file), fstatSync(fd)]
    return there.dev === open.dev && there.ino === open.ino
  } catch {
    return false
  }
}

/** A log that cannot be turned over must not stop the node that writes it. */
function bound(file: string): void {
  try {
    if (statSync(file).size > LOG_MAX_BYTES) turnOver(file)
  } catch {}
}

/** The open file stays the one that is written to, so its content is copied; without room for that it is dropped. */
function turnOver(file: string): void {
  try {
    copyFileSync(file, `${file}.1`)
  } finally {
    truncateSync(file)
  }
}
