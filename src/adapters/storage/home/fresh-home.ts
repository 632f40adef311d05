import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from './store-errors.js'

/** The paths of {@link FreshHome}. */
export interface FreshHomePaths {
  readonly home: string
  readonly run: string
  readonly logFile: string
  /** Directories that each start makes; a fresh home has them empty. */
  readonly dirs: readonly string[]
}

/**
 * A home for the time of a start. One that held nothing before is removed again when the start fails, except for a log.
 */
export class FreshHome {
  readonly #paths: FreshHomePaths
  readonly #wasThere: boolean
  #isFresh = false
  #isKept = false

  private constructor(paths: FreshHomePaths, wasThere: boolean) {
    this.#paths = paths
    this.#wasThere = wasThere
  }

  /** Call it before the start makes directories. */
  static async before(paths: FreshHomePaths): Promise<FreshHome> {
    return new FreshHome(paths, (await entriesOf(paths.home)) !== null)
  }

  /** Looks whether the home holds nothing yet. Call it once the home is locked, before anything is written. */
  async look(): Promise<void> {
    const { home, dirs } = this.#paths
    const own = new Set(dirs.map((dir) => path.relative(home, dir)))
    const names = await this.#content()
    const filled = await Promise.all(dirs.map(async (dir) => ((await entriesOf(dir)) ?? []).length > 0))
    this.#isFresh = names.every((name) => own.has(name)) && !filled.includes(true)
  }

  /** The home has something to keep from now on. */
  keep(): void {
    this.#isFresh = false
    this.#isKept = true
  }

  /** Removes the content of a fresh home. Call it while the home is locked, after all files are closed. */
  async removeContent(): Promise<void> {
    if (!this.#isFresh) return
    for (const name of await this.#content())
      await fs.rm(path.join(this.#paths.home, name), { recursive: true, force: true })
  }

  /** Removes the directories of a start that failed, if they are empty: another start may use them by now. */
  async removeDirectories(): Promise<void> {
    if (this.#isKept || (this.#wasThere && !this.#isFresh)) return
    const { home, run, dirs } = this.#paths
    for (const dir of [...dirs, run, ...(this.#wasThere ? [] : [home])]) await fs.rmdir(dir).catch(() => {})
  }

  /** Names in the home, without lock and log. */
  async #content(): Promise<string[]> {
    const { home, run, logFile } = this.#paths
    const others = new Set([run, logFile])
    return ((await entriesOf(home)) ?? []).filter((name) => !others.has(path.join(home, name)))
  }
}

/** Names in a directory; null: it does not exist. */
async function entriesOf(dir: string): Promise<string[] | null> {
  return await fs.readdir(dir).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
}
