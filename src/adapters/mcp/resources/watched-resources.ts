import { Abort } from '../../../kit/abort.js'
import { type AbortSignalLike, type Clock, wait } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import { MAX_WATCH_URIS } from '../imported/context-capability.js'
import type { MeshContext } from './mesh-context.js'
import { originOf, RESOURCES } from './resource-uri.js'

/** Shortest time between two questions for the revision of a followed resource, in milliseconds. */
export const WATCH_MS = 3000
/** Longest time, as a multiple of it: for a resource that has not changed for long. */
const MAX_TURNS = 10
/** Unchanged answers after which the time grows by one {@link WATCH_MS}. */
const IDLE_ANSWERS = 2
/** Resources of servers that one caller follows; further ones are refused. */
export const MAX_FOLLOWED = 256

/** Follows resources for one client. */
export interface ResourceListener {
  /** URIs that the client follows now, of any kind. */
  readonly watched: () => Iterable<string>
  changed(uri: string): void
}

/** Dependencies of {@link WatchedResources}. */
export interface WatchedResourcesDeps {
  readonly context: Pick<MeshContext, 'value'>
  readonly clock: Clock
  /** The published URIs of the resources among these URIs; others have none. */
  namesOf(uris: readonly string[]): Promise<readonly string[]>
}

/** A followed resource. */
interface FollowedResource {
  /** null: its server reports no changes of it. */
  revision: string | null
  /** Unchanged answers since the last change. */
  idle: number
  /** The turn of the next question. */
  due: number
}

/**
 * Changes of resources of imported servers: while clients follow some, their agents are asked for revisions again and
 * again, less often while nothing changes: each question is a task. Questions need no open channel, so they work over
 * relays, and end with their last client.
 */
export class WatchedResources {
  readonly #context: WatchedResourcesDeps['context']
  readonly #clock: Clock
  readonly #namesOf: WatchedResourcesDeps['namesOf']
  readonly #listeners = new Set<ResourceListener>()
  /** By published URIs. */
  readonly #followed = new Map<string, FollowedResource>()
  #turn = 0
  #ended = new Abort()

  constructor({ context, clock, namesOf }: WatchedResourcesDeps) {
    this.#context = context
    this.#clock = clock
    this.#namesOf = namesOf
  }

  /** Follows what a listener names until the returned function is called. */
  on(listener: ResourceListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#ended = new Abort()
      void this.#run(this.#ended)
    }
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#ended.abort()
    }
  }

  /** Begins to follow a resource by its published URI; false when its server does not report its changes. */
  async begin(name: string): Promise<boolean> {
    if (this.#isReported(name)) return true
    if (this.#followed.size >= MAX_FOLLOWED) return false
    await this.#ask(originOf(name)?.address ?? '', [name], this.#ended)
    return this.#isReported(name)
  }

  async #run(signal: AbortSignalLike): Promise<void> {
    for (;;) {
      const before = new Set(this.#followed.keys())
      await wait(this.#clock, WATCH_MS, signal)
      if (signal.aborted) return
      this.#turn++
      const names = await this.#wanted()
      // One that came during the wait may not be named yet.
      for (const name of before) if (!names.has(name)) this.#followed.delete(name)
      const due = [...names].filter((name) => (this.#followed.get(name)?.due ?? 0) <= this.#turn)
      // Not awaited: a slow server must not delay questions to others.
      for (const [address, of] of byAddress(due)) void this.#askAll(address, of, signal)
    }
  }

  #isReported(name: string): boolean {
    return (this.#followed.get(name)?.revision ?? null) !== null
  }

  async #wanted(): Promise<ReadonlySet<string>> {
    const uris = new Set<string>()
    for (const { watched } of this.#listeners)
      for (const uri of watched()) if (uris.size < MAX_FOLLOWED && mayBeOfServer(uri)) uris.add(uri)
    return new Set(uris.size === 0 ? [] : await this.#namesOf([...uris]).catch(() => []))
  }

  /** A server that cannot be asked now is asked again: its revisions are others if something changed meanwhile. */
  async #askAll(address: string, names: readonly string[], signal: AbortSignalLike): Promise<void> {
    for (const name of names) {
      const { revision, idle } = this.#followed.get(name) ?? { revision: null, idle: 0 }
      this.#followed.set(name, { revision, idle, due: this.#turn + MAX_TURNS })
    }
    for (let at = 0; at < names.length; at += MAX_WATCH_URIS)
      await this.#ask(address, names.slice(at, at + MAX_WATCH_URIS), signal).catch(() => {})
  }

  async #ask(address: string, names: readonly string[], signal: AbortSignalLike): Promise<void> {
    const uris = names.map((name) => originOf(name)?.uri ?? '')
    const answer = await this.#context.value({ address, method: 'watch', params: { uris }, signal })
    const revisions: unknown = isRecord(answer) ? answer['revisions'] : null
    names.forEach((name, at) => {
      const given: unknown = Array.isArray(revisions) ? (revisions as readonly unknown[])[at] : null
      this.#answered(name, typeof given === 'string' ? given.slice(0, 64) : null)
    })
  }

  #answered(name: string, revision: string | null): void {
    const { revision: last, idle } = this.#followed.get(name) ?? { revision: null, idle: 0 }
    const isChanged = last !== null && revision !== null && revision !== last
    const turns = revision === null ? MAX_TURNS : Math.min(MAX_TURNS, 1 + Math.floor(idle / IDLE_ANSWERS))
    this.#followed.set(name, { revision, idle: isChanged ? 0 : idle + 1, due: this.#turn + (isChanged ? 1 : turns) })
    if (isChanged) this.#tell(name)
  }

  #tell(name: string): void {
    for (const listener of this.#listeners) listener.changed(name)
  }
}

function mayBeOfServer(uri: string): boolean {
  return uri.startsWith(RESOURCES) || !uri.startsWith('a2a://')
}

function byAddress(names: Iterable<string>): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const name of names) {
    const address = originOf(name)?.address ?? ''
    const known = found.get(address)
    if (known === undefined) found.set(address, [name])
    else known.push(name)
  }
  return found
}
