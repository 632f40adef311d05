import type Corestore from 'corestore'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf, STOP_AND_REPAIR } from '../../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../../kit/events.js'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { MeshId } from '../../../kit/ids.js'
import type { MemberLog } from '../../../ports/mesh.js'
import type { LogProblem } from '../../../ports/node-api.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { isGivenBack } from '../cores/given-back.js'
import { type LogCore, logCores } from './log-copy.js'

/** Name of the stored document of the marks. */
export const LOG_MARKS = 'log-marks'
/** Milliseconds between a change of the log and the storing of its mark, at most. */
const MARK_MS = 200
/** Milliseconds before the next look while entries are missing: their return does not change the view. */
const AGAIN_MS = 1000

/** The marks of a mesh, as stored. */
interface StoredLogMarks {
  readonly mesh: MeshId
  /** How many blocks of each writer core (z32) were here once. */
  readonly cores: Readonly<Record<string, number>>
}

/** Dependencies of {@link LogMarks}. */
export interface LogMarksDeps {
  readonly store: Corestore
  readonly documents: NodeStore
  readonly meshId: MeshId
  readonly log: Pick<MemberLog, 'onChange'>
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/**
 * The durable length of the mesh log here, kept outside of its store. The engine silently drops the end of a damaged
 * log file; without marks nobody would notice. The own core has another mark, which stops a start.
 */
export class LogMarks {
  readonly #deps: LogMarksDeps
  #cores: StoredLogMarks['cores'] = {}
  /** JSON of the stored marks. */
  #stored = ''
  #isShort = false
  readonly #changes: Emitter<void>
  #timer: Timer | null = null
  /** Runs while entries are missing. */
  #againTimer: Timer | null = null
  #stop: () => void = () => {}
  #working: Promise<void> = Promise.resolve()

  constructor(deps: LogMarksDeps) {
    this.#deps = deps
    this.#changes = new Emitter((error) => this.#failed(error))
  }

  /** Calls the listener when {@link problems} change. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /**
   * Compares the store with the marks, and follows the log from now on.
   * @throws the store's error when it cannot be read
   */
  async start(): Promise<void> {
    const { documents, log, meshId } = this.#deps
    this.#cores = await readLogMarks(documents, meshId)
    this.#stored = JSON.stringify(this.#cores)
    await this.#look()
    this.#stop = log.onChange(() => this.#due())
    this.#due()
  }

  /** Problems for `status`. */
  problems(): LogProblem[] {
    if (!this.#isShort) return []
    const message =
      'the mesh log on this disk lost entries that were here; this node knows less of its mesh until members have given them'
    return [{ code: 'STORE_DAMAGED', message, next: STOP_AND_REPAIR }]
  }

  /** Stops following the log. */
  async close(): Promise<void> {
    this.#stop()
    this.#cancel()
    await this.#working
    // Work under way may have asked for another look.
    this.#cancel()
  }

  #cancel(): void {
    const { clock } = this.#deps
    clock.clear(this.#timer)
    clock.clear(this.#againTimer)
    this.#timer = null
    this.#againTimer = null
  }

  /** A timer of its own: other changes are marked without delay. */
  #lookAgain(): void {
    this.#againTimer ??= this.#deps.clock.after(AGAIN_MS, () => {
      this.#againTimer = null
      this.#due()
    })
  }

  #due(): void {
    this.#timer ??= this.#deps.clock.after(MARK_MS, () => {
      this.#timer = null
      this.#working = this.#working.then(() => this.#store()).catch((error: unknown) => this.#failed(error))
    })
  }

  async #store(): Promise<void> {
    const { store, documents, meshId } = this.#deps
    await this.#look()
    if (this.#isShort) this.#lookAgain()
    const cores = this.#cores
    const json = JSON.stringify(cores)
    // Compares with the stored marks, not with those in memory: the start looked too, and a write may have failed
    // since.
    if (json === this.#stored) return
    // The marked blocks must be on disk, also when the power fails.
    await store.storage.db.flush()
    await documents.write(LOG_MARKS, { mesh: meshId, cores } satisfies StoredLogMarks)
    this.#stored = json
  }

  async #look(): Promise<void> {
    const { store, meshId } = this.#deps
    const lengths = new Map<string, number>()
    for await (const found of logCores(store, keyFromText(meshId))) {
      lengths.set(keyToText(found.core.key), await lengthOf(found))
      await found.core.close()
    }
    const wasShort = this.#isShort
    this.#isShort = isShort(this.#cores, lengths)
    if (this.#isShort !== wasShort) this.#changes.emit()
    const higher = [...lengths].filter(([core, length]) => length > (this.#cores[core] ?? 0) && Number.isFinite(length))
    if (higher.length > 0) this.#cores = { ...this.#cores, ...Object.fromEntries(higher) }
  }

  #failed(error: unknown): void {
    this.#deps.telemetry.log('error', 'how long the mesh log is could not be kept', { reason: messageOf(error) })
  }
}

/**
 * Blocks of a core from its first one on. Infinite, so that it never counts as shorter: for a view, which may have a
 * mark of the moment in which it looked like a writer's core, and when this node removed blocks.
 */
export async function lengthOf({ core, isView }: LogCore): Promise<number> {
  return isView || (await isGivenBack(core)) ? Number.POSITIVE_INFINITY : core.contiguousLength
}

/** The stored marks of a home: blocks of each writer core of a mesh. */
export async function readLogMarks(documents: NodeStore, mesh: MeshId): Promise<StoredLogMarks['cores']> {
  const stored = await documents.read<StoredLogMarks>(LOG_MARKS)
  return stored?.mesh === mesh ? stored.cores : {}
}

/** Has some writer core fewer blocks than its mark? */
export function isShort(marks: StoredLogMarks['cores'], lengths: ReadonlyMap<string, number>): boolean {
  return Object.entries(marks).some(([core, marked]) => (lengths.get(core) ?? 0) < marked)
}
