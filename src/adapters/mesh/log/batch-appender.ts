interface WaitingAppend {
  readonly value: Uint8Array
  resolve(): void
  reject(error: unknown): void
}

/** Values of one batch. Other nodes refuse a batch of more than 4,096 blocks. */
const MAX_VALUES = 64

/**
 * Appends through one mutex: concurrent appends to an Autobase are not safe. Values that wait together go as one batch.
 */
export class BatchAppender {
  readonly #append: (values: Uint8Array[]) => Promise<unknown>
  #queued: WaitingAppend[] = []
  #isRunning = false

  constructor(append: (values: Uint8Array[]) => Promise<unknown>) {
    this.#append = append
  }

  /** Resolves when the value is appended. Rejects as its batch did. */
  append(value: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queued.push({ value, resolve, reject })
      void this.#run()
    })
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#queued.length > 0) await this.#flush(this.#queued.splice(0, MAX_VALUES))
    this.#isRunning = false
  }

  async #flush(batch: readonly WaitingAppend[]): Promise<void> {
    try {
      await this.#append(batch.map((one) => one.value))
      for (const one of batch) one.resolve()
    } catch (error) {
      for (const one of batch) one.reject(error)
    }
  }
}
