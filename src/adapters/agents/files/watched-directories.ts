import fs from 'node:fs/promises'
import path from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { Clock, Timer } from '../../../kit/clock.js'

/**
 * A file is reported when it was unchanged for this time, so that a half-written file is not taken for a broken one.
 */
const SETTLE_MS = 100
const POLL_MS = 25
/** How often to look whether a directory is still the one that is watched. */
const LOOK_MS = 1000

/** Options of {@link WatchedDirectories}. */
export interface WatchedDirectoriesOptions {
  /** They need not exist (yet). */
  readonly dirs: readonly string[]
  readonly clock: Clock
  /** Something in a directory, or a directory itself, may have changed. */
  onChange(): void
  onError(error: unknown): void
}

/**
 * Watches directories, not their subdirectories, also through their removal: a directory that comes back is watched
 * again.
 */
export class WatchedDirectories {
  readonly #options: WatchedDirectoriesOptions
  readonly #dirs: readonly string[]
  readonly #timer: Timer
  /** Identity of each directory when its watch began; a watch does not follow a name to another directory. */
  #watched: readonly (string | null)[] = []
  #watcher: FSWatcher | null = null
  #isLost = true
  #looking: Promise<void>
  #isClosed = false

  constructor(options: WatchedDirectoriesOptions) {
    this.#options = options
    this.#dirs = options.dirs.map((dir) => path.resolve(dir))
    this.#looking = this.#look()
    this.#timer = options.clock.every(LOOK_MS, () => {
      this.#looking = this.#looking.then(() => this.#look())
    })
  }

  /** Stops watching; no further change is reported. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.clock.clear(this.#timer)
    await this.#looking
    await this.#watcher?.close()
  }

  async #look(): Promise<void> {
    const marks = await Promise.all(this.#dirs.map(markOf))
    if (this.#isClosed || (!this.#isLost && marks.every((mark, i) => mark === this.#watched[i]))) return
    this.#isLost = false
    this.#watched = marks
    await this.#watcher?.close()
    if (this.#isClosed) return
    this.#watcher = this.#open(this.#dirs.filter((_, i) => marks[i] !== null))
    this.#options.onChange()
  }

  #open(dirs: readonly string[]): FSWatcher {
    const watcher = watch([...dirs], {
      ignoreInitial: true,
      depth: 0,
      atomic: true,
      awaitWriteFinish: { stabilityThreshold: SETTLE_MS, pollInterval: POLL_MS }
    })
    watcher.on('all', (event, at) => {
      // The watch of a directory that goes away ends, even when the same one comes back; it was never begun when it
      // went before.
      if ((event === 'unlinkDir' || event === 'addDir') && this.#dirs.includes(path.resolve(at))) this.#isLost = true
      this.#options.onChange()
    })
    // Finds changes from before the watcher was ready.
    watcher.on('ready', () => this.#options.onChange())
    watcher.on('error', (error) => this.#options.onError(error))
    return watcher
  }
}

/** Distinguishes a directory from another of the same name; null when it does not exist. */
async function markOf(dir: string): Promise<string | null> {
  const stats = await fs.stat(dir, { bigint: true }).catch(() => null)
  return stats === null ? null : `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`
}
