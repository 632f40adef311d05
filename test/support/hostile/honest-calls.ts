import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Teardown } from '../tmp.js'
import type { HonestNews, HonestOrder } from './honest-calls-main.js'

const MAIN = fileURLToPath(new URL('honest-calls-main.js', import.meta.url))

/** How long honest calls took, in milliseconds. */
export interface Times {
  readonly calls: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Calls of one honest node at another, made by a process beside it. */
export class HonestCalls {
  readonly #child: ChildProcess
  #times: number[] = []

  /** `paceMs`: from the beginning of a call to that of the next; 0: one after the other. */
  constructor(t: Teardown, { home, paceMs }: { readonly home: string; readonly paceMs: number }) {
    this.#child = fork(MAIN, [home, String(paceMs)])
    const gone = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    t.teardown(async () => {
      this.#child.kill()
      await gone
    })
  }

  /**
   * Makes so many calls; their times in milliseconds. `onBegin`: one begins.
   * @throws Error when one does not end COMPLETED
   */
  async make(calls: number, onBegin: () => void = () => {}): Promise<readonly number[]> {
    return await this.#run({ calls }, onBegin)
  }

  /** Makes calls until `job` is done; their times. @throws Error when one does not end COMPLETED */
  async during(job: () => Promise<void>, onBegin: () => void): Promise<readonly number[]> {
    const made = this.#run({ calls: null }, onBegin)
    await Promise.race([job().finally(() => this.#tell('stop')), made])
    return await made
  }

  /** Times of the calls that ended in the current run so far. */
  get times(): readonly number[] {
    return this.#times
  }

  #tell(order: HonestOrder): void {
    this.#child.send(order)
  }

  #run(order: HonestOrder, onBegin: () => void): Promise<readonly number[]> {
    const times: number[] = []
    this.#times = times
    const failures: string[] = []
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error('the process of the honest calls ended'))
      const onNews = (news: HonestNews): void => {
        if (news.kind === 'begun') return onBegin()
        if (news.kind === 'ended') {
          times.push(news.ms)
          if (news.failure !== null) failures.push(news.failure)
          return
        }
        this.#child.off('message', onNews)
        this.#child.off('exit', onExit)
        if (failures.length === 0) resolve(times)
        else reject(new Error(`${failures.length} of ${times.length} honest calls failed, first: ${failures[0]}`))
      }
      this.#child.on('message', onNews)
      this.#child.once('exit', onExit)
      this.#tell(order)
    })
  }
}

/** The figures of some calls. */
export function timesOf(samples: readonly number[]): Times {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) / 10
  return { calls: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}
