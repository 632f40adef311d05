import vm from 'node:vm'

/** Runs code that may take too long, and ends it then: loops and patterns too. */
export class TimeLimit {
  #context: { run: (() => unknown) | null } | null = null
  readonly #script = new vm.Script('run()')

  /**
   * Runs `run` for at most `ms` milliseconds; null when its time is over. It may be ended anywhere, and must not return
   * null itself. It costs some 50 microseconds. @throws the error of `run`
   */
  within<T extends object>(ms: number, run: () => T): T | null {
    const context = (this.#context ??= vm.createContext({ run: null }) as { run: (() => unknown) | null })
    context.run = run
    try {
      return this.#script.runInContext(context, { timeout: ms }) as T
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return null
      throw error
    } finally {
      context.run = null
    }
  }
}
