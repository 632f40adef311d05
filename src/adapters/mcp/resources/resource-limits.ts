import type { ProcessMeter } from '../server/process-meter.js'
import type { StructuredErrorCode } from '../server/structured-error.js'
import type { ValidationResult } from '../server/tool-registry.js'
import { type ReleaseSlot, SlotQueue, type SlotRequest } from './slot-queue.js'

/** Resource usage of the process (spec mcp-runtime, ResourceTelemetry). */
export interface ResourceTelemetry {
  readonly memoryUsageBytes: number
  readonly eventLoopDelayMs: number
  readonly concurrentExecutions: number
  readonly maxConcurrentExecutions: number
}

/** Bounds of {@link ResourceManager}. */
export interface ResourceLimits {
  readonly maxConcurrentExecutions: number
  /** UTF-8 bytes of the JSON of a call's arguments. */
  readonly maxPayloadBytes: number
  /** Calls that wait for a slot at once. Default 256. */
  readonly maxWaitingExecutions?: number
}

/** Default of `maxWaitingExecutions`. */
const MAX_WAITING = 256
/** Canceled calls whose handlers still run without a slot, at most, as a multiple of the slots. */
const ABANDONED_PER_SLOT = 4

/** Beyond this share of the slots the process is degraded. */
const BUSY_SHARE = 0.8
/** Delay of the event loop beyond which the process is degraded, and unhealthy. */
const SLOW_LOOP_MS = 100
const STUCK_LOOP_MS = 500
/** The process is unhealthy after this number of calls in a row refused for lack of resources. */
const EXHAUSTED_IN_A_ROW = 3

/**
 * Slots, payload sizes and telemetry of one process (spec mcp-runtime, ResourceManager): all its connections share one.
 */
export class ResourceManager {
  readonly #limits: ResourceLimits
  readonly #meter: Pick<ProcessMeter, 'memoryBytes' | 'loopDelayMs'>
  readonly #waiting: SlotQueue
  #taken = 0
  #abandoned = 0
  #exhausted = 0

  constructor(limits: ResourceLimits, meter: Pick<ProcessMeter, 'memoryBytes' | 'loopDelayMs'>) {
    this.#limits = limits
    this.#meter = meter
    this.#waiting = new SlotQueue(limits.maxWaitingExecutions ?? MAX_WAITING)
  }

  /** A slot, or null when all are taken. */
  tryAcquireSlot(): ReleaseSlot | null {
    if (this.#taken >= this.#limits.maxConcurrentExecutions) return null
    this.#taken++
    return this.#release()
  }

  /** A slot as soon as one is free; null when too many calls wait already, or the signal aborts. */
  acquireSlot(request: SlotRequest = {}): Promise<ReleaseSlot | null> {
    const free = this.tryAcquireSlot()
    return free === null ? this.#waiting.join(request) : Promise.resolve(free)
  }

  /** Calls that wait for a slot. */
  get waitingExecutions(): number {
    return this.#waiting.size
  }

  /**
   * Gives the slot of a canceled call back at once. Call the result when its handler ends. With four times as many such
   * handlers as slots the slot stays taken until then.
   */
  abandonSlot(release: ReleaseSlot): ReleaseSlot {
    if (this.#abandoned >= this.#limits.maxConcurrentExecutions * ABANDONED_PER_SLOT) return release
    this.#abandoned++
    release()
    return once(() => this.#abandoned--)
  }

  /** Are the arguments small enough? A value without a JSON form is not. */
  validatePayloadSize(payload: unknown): ValidationResult {
    const { maxPayloadBytes } = this.#limits
    const bytes = jsonBytes(payload)
    if (bytes !== null && bytes <= maxPayloadBytes) return { valid: true, errors: [] }
    const message =
      bytes === null
        ? 'has no JSON form'
        : `is ${bytes} bytes of JSON; at most ${maxPayloadBytes} are taken (tools.maxPayloadBytes of the node)`
    return { valid: false, errors: [{ path: '', message }] }
  }

  /** Current usage. */
  getTelemetry(): ResourceTelemetry {
    return {
      memoryUsageBytes: this.#meter.memoryBytes(),
      eventLoopDelayMs: this.#meter.loopDelayMs(),
      concurrentExecutions: this.#taken,
      maxConcurrentExecutions: this.#limits.maxConcurrentExecutions
    }
  }

  /** Is it degraded or worse for want of slots or time? */
  isApproachingLimits(): boolean {
    return this.#taken > this.#limits.maxConcurrentExecutions * BUSY_SHARE || this.#meter.loopDelayMs() > SLOW_LOOP_MS
  }

  /**
   * Counts each answered call: null for success, else the code of its error. A request refused as malformed does not
   * count.
   */
  answered(code: StructuredErrorCode | null): void {
    this.#exhausted = code === 'RESOURCE_EXHAUSTED' ? this.#exhausted + 1 : 0
  }

  /** Calls in a row that ended with RESOURCE_EXHAUSTED. */
  get consecutiveExhausted(): number {
    return this.#exhausted
  }

  /** The health of the process (spec mcp-runtime, Health Thresholds). */
  health(): 'healthy' | 'degraded' | 'unhealthy' {
    const isFull = this.#taken >= this.#limits.maxConcurrentExecutions
    if (isFull || this.#meter.loopDelayMs() > STUCK_LOOP_MS || this.#exhausted >= EXHAUSTED_IN_A_ROW) return 'unhealthy'
    return this.isApproachingLimits() ? 'degraded' : 'healthy'
  }

  #release(): ReleaseSlot {
    return once(() => {
      // Passed on: the number of taken slots stays.
      if (!this.#waiting.grant(() => this.#release())) this.#taken--
    })
  }
}

function once(run: () => void): ReleaseSlot {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    run()
  }
}

function jsonBytes(value: unknown): number | null {
  try {
    const text = JSON.stringify(value) as string | undefined
    return text === undefined ? null : Buffer.byteLength(text)
  } catch {
    return null
  }
}
