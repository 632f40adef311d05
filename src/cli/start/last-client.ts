import { existsSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { HomePaths } from '../../config/paths.js'

/** Milliseconds without a client after which the node ends: a client that restarts finds it. */
const UNUSED_MS = 3000
/** The same for the first client. */
const FIRST_MS = 60_000

/** The file that is there while a node stays after its clients. */
function markOf({ run }: HomePaths): string {
  return path.join(run, 'stays-after-clients')
}

/** Lets a running node stay after its last client: a person started it, too. */
export function keepAfterClients(home: HomePaths): void {
  writeFileSync(markOf(home), '', { mode: 0o600 })
}

/** Notices when the last MCP client of a node that such a client started has gone. */
export class LastClient {
  readonly #mark: string
  readonly #isGone: () => void
  /** Resolves some seconds after the last client left, unless a person wanted the node to stay. */
  readonly gone: Promise<void>
  #timer: NodeJS.Timeout | null = null
  #count = 0
  /** Only then the mark is that of this process. */
  #hasBegun = false

  constructor(home: HomePaths) {
    this.#mark = markOf(home)
    let isGone = (): void => {}
    this.gone = new Promise((resolve) => (isGone = resolve))
    this.#isGone = isGone
  }

  /** The node is up. */
  begin(): void {
    this.#hasBegun = true
    // It was for an earlier process.
    rmSync(this.#mark, { force: true })
    // A client may have come and gone before.
    if (this.#count === 0 && this.#timer === null) this.#wait(FIRST_MS)
  }

  /** The number of clients changed. */
  counted(count: number): void {
    this.#count = count
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (count === 0) this.#wait(UNUSED_MS)
  }

  /** This process runs no node any more. */
  release(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (this.#hasBegun) rmSync(this.#mark, { force: true })
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (!existsSync(this.#mark)) this.#isGone()
    }, ms)
  }
}
