import { type Clock, wait } from '../../../kit/clock.js'
import { asNodeError } from '../../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../../kit/events.js'
import type { NodeApi, WatchName, Watches } from '../../../ports/node-api.js'

/** How often a watch that broke off is opened again at most, in milliseconds. */
const AGAIN_MS = 1000

/** Dependencies of {@link followWatch}. */
export interface FollowDeps {
  /** The API of the notified caller. */
  readonly api: NodeApi
  readonly clock: Clock
}

/**
 * Reads a watch until the returned function is called. A watch that broke off is opened again, with its snapshot; a
 * refused one is not.
 */
export function followWatch<N extends WatchName>(
  deps: FollowDeps,
  { name, params }: { readonly name: N; readonly params: Watches[N]['params'] },
  onItem: (item: Watches[N]['item']) => void
): Unsubscribe {
  const ended = new AbortController()
  void follow(ended.signal)
  return () => ended.abort()

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const item of deps.api.watch(name, params, { signal })) onItem(item)
      } catch (error) {
        // A node that stops ends its watches too: it may be back. A caller without the right never gets it.
        if (['FORBIDDEN', 'SANDBOX_VIOLATION'].includes(asNodeError(error).code)) return
      }
      if (!signal.aborted) await wait(deps.clock, AGAIN_MS, signal)
    }
  }
}

/** Changes for any number of listeners from one watch, which runs only while there is a listener. */
export class SharedChanges<T> {
  readonly #listeners = new Emitter<T>(() => {})
  readonly #begin: (tell: (change: T) => void) => Unsubscribe
  #end: Unsubscribe | null = null

  constructor(begin: (tell: (change: T) => void) => Unsubscribe) {
    this.#begin = begin
  }

  /** Calls back with each change; returns the function that ends it. */
  on(listener: (change: T) => void): Unsubscribe {
    const remove = this.#listeners.on((change) => listener(change))
    this.#end ??= this.#begin((change) => this.#listeners.emit(change))
    return () => {
      remove()
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  #stop(): void {
    this.#end?.()
    this.#end = null
  }
}

/** That agents came, went or changed since the first look at them. */
export function agentChanges(deps: FollowDeps, params: Watches['agents.list']['params']): SharedChanges<void> {
  return new SharedChanges<void>((tell) => {
    let isFirst = true
    return followWatch(deps, { name: 'agents.list', params }, () => {
      if (!isFirst) tell()
      isFirst = false
    })
  })
}
