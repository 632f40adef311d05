// Records through which files a process runs. Instrumented code (`instrument.mjs`) calls it as `$recorder`.

/**
 * The file that runs is that of the innermost function that runs. A function runs from its entry to its return, without
 * the time of its awaits and yields. Code of packages and the time between two events belong to no file: the file
 * before them counts as running. A change of the file that runs is a move when a function is entered: a call that leads
 * a reader into another file. The way back, by a return, a pause or a continuation, is counted apart.
 */
export class Recorder {
  #runs = []
  #path = null

  /** Begins to record. */
  begin() {
    this.#path = []
  }

  /** Ends a recording. @returns each change: the number of the file that ran from then on, and whether it was a move */
  end() {
    const path = this.#path
    this.#path = null
    return path
  }

  enter(file) {
    const run = { file }
    this.#runs.push(run)
    this.#note(true)
    return run
  }

  leave(run) {
    const at = this.#runs.lastIndexOf(run)
    if (at === -1) return
    this.#runs.splice(at, 1)
    this.#note(false)
  }

  /** @returns `value`, which the run waits for. */
  pause(run, value) {
    this.leave(run)
    return value
  }

  /** @returns `value`, which the run waited for. */
  resume(run, value) {
    if (!this.#runs.includes(run)) this.#runs.push(run)
    this.#note(false)
    return value
  }

  /** The values of `for await`: the run pauses for each. */
  each(run, values) {
    return {
      [Symbol.asyncIterator]: () => {
        const iterator = values[Symbol.asyncIterator]?.() ?? values[Symbol.iterator]()
        const next = () => this.pause(run, iterator.next())
        return { next, return: (value) => iterator.return?.(value) ?? { done: true, value } }
      }
    }
  }

  #note(isMove) {
    const file = this.#runs.at(-1)?.file
    if (this.#path !== null && file !== undefined && file !== this.#path.at(-1)?.file) this.#path.push({ file, isMove })
  }
}
