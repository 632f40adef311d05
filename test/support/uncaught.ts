import { inspect } from 'node:util'

/** Errors that nobody caught: each would have ended a node. */
export class Uncaught {
  readonly #errors: unknown[] = []

  /**
   * Counts what nobody catches while the job runs, instead of ending the process: `safety-catch` throws in tasks of its
   * own.
   */
  async during(job: () => Promise<void>): Promise<void> {
    const note = (error: unknown): void => void this.#errors.push(error)
    process.on('uncaughtException', note)
    process.on('unhandledRejection', note)
    try {
      await job()
      this.check()
    } finally {
      process.off('uncaughtException', note)
      process.off('unhandledRejection', note)
    }
  }

  /** Throws when there are some since it was last asked. Errors of tasks that are still to run come later. */
  check(): void {
    const [first] = this.#errors.splice(0)
    if (first !== undefined) throw new Error(`nobody caught: ${inspect(first)}`)
  }
}
