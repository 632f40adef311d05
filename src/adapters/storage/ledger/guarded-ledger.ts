import type { Clock, Timer } from '../../../kit/clock.js'
import { asNodeError, STOP_AND_REPAIR } from '../../../kit/errors.js'
import type { ErrorCode, NodeError } from '../../../kit/errors.js'
import { shellWord } from '../../../kit/text.js'
import { KEYS } from '../../../domain/reliable/keys.js'
import type { Ledger, LedgerChange, LedgerChanges, LedgerDurability } from '../../../ports/ledger.js'
import type { Problem } from '../../../ports/node-api.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { Ballast } from '../home/ballast.js'
import { freeBytes, isDiskFull, LOW_BYTES } from '../home/disk-space.js'
import { diskFull } from '../home/store-errors.js'

/**
 * How often it is looked whether the disk is full, and tried whether the ledger takes something again, in milliseconds.
 */
const PROBE_MS = 5000
/** Errors of a ledger that accepts no commit. */
const FAULTS: ReadonlySet<ErrorCode> = new Set(['DISK_FULL', 'NO_PERMISSION', 'STORE_DAMAGED'])
/** Keys of the input of a request: a commit that sets one begins new work. */
const INPUT = KEYS.input('')
const isInput = ({ key, value }: LedgerChange): boolean => value !== null && key.startsWith(INPUT)

/** Dependencies of {@link GuardedLedger}. */
export interface GuardDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly ledger: Ledger
  readonly ballast: Ballast
  /** Its directory, for the message. */
  readonly dir: string
}

/**
 * A ledger that becomes read-only when its disk is full. It removes a ballast, so that ends of work can still be
 * recorded, and refuses new work. It accepts new work when there is space for a new ballast.
 */
export class GuardedLedger implements Ledger {
  readonly #deps: GuardDeps
  readonly #timer: Timer
  #fault: NodeError | null = null
  /** Set once something that it holds could not be read. */
  #unread: NodeError | null = null
  #isProbing = false

  constructor(deps: GuardDeps) {
    this.#deps = deps
    this.#timer = deps.clock.every(PROBE_MS, () => void this.#probe())
    void deps.ballast.fill()
  }

  get: Ledger['get'] = (key) => this.#read(this.#deps.ledger.get(key))
  list: Ledger['list'] = (range) => this.#read(this.#deps.ledger.list(range))
  compact: Ledger['compact'] = () => this.#deps.ledger.compact()
  size: Ledger['size'] = () => this.#deps.ledger.size()

  commit(given: LedgerChanges, survives?: LedgerDurability): Promise<void> {
    const changes = this.#fault !== null && typeof given === 'function' ? given() : given
    if (this.#fault !== null && typeof changes !== 'function' && changes.some(isInput))
      return Promise.reject(this.#fault)
    const done = this.#deps.ledger.commit(changes, survives)
    done.catch(this.#notTaken)
    return done
  }

  #read<T>(reading: Promise<T>): Promise<T> {
    reading.catch(this.#notRead)
    return reading
  }

  /** Damage is permanent: it is reported from then on. */
  readonly #notRead = (error: unknown): void => {
    const failure = asNodeError(error)
    if (failure.code === 'STORE_DAMAGED') this.#unread ??= failure
  }

  readonly #notTaken = (error: unknown): void => this.#failed(asNodeError(error))

  get fault(): NodeError | null {
    return this.#fault
  }

  /** Faults of the ledger, each with a next step. */
  problems(): Problem[] {
    const unread =
      this.#unread === null ? [] : [{ code: this.#unread.code, message: this.#unread.message, next: STOP_AND_REPAIR }]
    if (this.#fault === null) return [...unread, ...this.#lowDisk()]
    const { code, message, next } = this.#fault
    const dir = this.#deps.dir
    return [
      ...unread,
      {
        code,
        message: `${message}; new requests and changes of the mesh are refused, running work still ends; the node accepts new work ${code === 'DISK_FULL' ? `once ${Math.ceil(this.#deps.ballast.neededBytes / 1024 ** 2)} MiB are free` : 'when that is repaired'}`,
        next: next[0] ?? `df -h ${shellWord(dir)}`
      }
    ]
  }

  /** Notices a disk that is full now. */
  look(): void {
    const { dir } = this.#deps
    if (this.#fault === null && isDiskFull(dir)) this.#failed(diskFull(dir))
  }

  async close(): Promise<void> {
    this.#deps.clock.clear(this.#timer)
    await this.#deps.ledger.close()
  }

  #lowDisk(): Problem[] {
    const { dir } = this.#deps
    const free = freeBytes(dir)
    if (free === null || free >= LOW_BYTES) return []
    const message = `${Math.floor(free / 1024 ** 2)} MiB are free on the disk of ${dir}: when it is full, this node refuses new requests`
    return [{ code: 'DISK_LOW', message, next: `df -h ${shellWord(dir)}` }]
  }

  #failed(error: NodeError): void {
    if (!FAULTS.has(error.code)) return
    if (this.#fault === null) {
      this.#deps.telemetry.count('errors', 'ledger')
      this.#deps.telemetry.log('error', 'the ledger takes nothing more; new requests are refused', {
        reason: error.message
      })
    }
    this.#fault = error
    if (error.code === 'DISK_FULL') void this.#deps.ballast.free()
  }

  /**
   * A disk that is full is noticed before something fails by it. When the ballast is there again there is room; then it
   * takes a commit.
   */
  async #probe(): Promise<void> {
    const { ballast, ledger, telemetry } = this.#deps
    const wasTaking = this.#fault === null
    this.look()
    if (wasTaking || this.#fault === null || this.#isProbing) return
    this.#isProbing = true
    try {
      if (this.#fault.code === 'DISK_FULL' && !(await ballast.fill())) return
      await ledger.commit([])
      this.#fault = null
      telemetry.log('info', 'the ledger takes requests again')
    } catch (error) {
      this.#failed(asNodeError(error))
    } finally {
      this.#isProbing = false
    }
  }
}
