import { type Clock, wait } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import { MAX_WATCH_URIS } from '../imported/context-capability.js'
import type { MeshContext } from './mesh-context.js'
import { originOf, RESOURCES } from './resource-uri.js'

/** How often servers are asked for the revisions of resources that clients follow, in milliseconds. */
export const WATCH_MS = 3000
/** Resources of servers that one caller follows; further ones are refused. */
export const MAX_FOLLOWED = 256

/** A resource whose server reports no changes is asked for again at each such question. */
const AGAIN_EVERY = 20

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

/**
 * Changes of resources of imported servers: while clients follow some, their agents are asked for revisions again and
 * again. Questions need no open channel, so they work over relays, and end with their last client.
 */
export class WatchedResources {
  readonly #context: WatchedResourcesDeps['context']
  readonly #clock: Clock
  readonly #namesOf: WatchedResourcesDeps['namesOf']
  readonly #listeners = new Set<ResourceListener>()
  /** The last revision of each followed resource, by its published URI; null: its server reports none. */
  readonly #revisions = new Map<string, string | null>()
  #ended = new AbortController()

  constructor({ context, clock, namesOf }: WatchedResourcesDeps) {
    this.#context = context
    this.#clock = clock
    this.#namesOf = namesOf
  }

  /** Follows what a listener names until the returned function is called. */
  on(listener: ResourceListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#ended = new AbortController()
      void this.#run(this.#ended.signal)
    }
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#ended.abort()
    }
  }

  /** Begins to follow a resource by its published URI; false when its server does not report its changes. */
  async begin(name: string): Promise<boolean> {
    if ((this.#revisions.get(name) ?? null) !== null) return true
    if (this.#revisions.size >= MAX_FOLLOWED) return false
    const address = originOf(name)?.address ?? ''
    await this.#ask(address, [name], this.#ended.signal)
    return (this.#revisions.get(name) ?? null) !== null
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let turn = 1; ; turn++) {
      const before = new Set(this.#revisions.keys())
      await wait(this.#clock, WATCH_MS, signal)
      if (signal.aborted) return
      const names = await this.#followed()
      // One that came during the wait may not be named yet.
      for (const name of before) if (!names.has(name)) this.#revisions.delete(name)
      const asked = [...names].filter((name) => turn % AGAIN_EVERY === 0 || this.#revisions.get(name) !== null)
      await Promise.all([...byAddress(asked)].map(([address, of]) => this.#askAll(address, of, signal)))
    }
  }

  async #followed(): Promise<ReadonlySet<string>> {
    const uris = new Set<string>()
    for (const { watched } of this.#listeners)
      for (const uri of watched()) if (uris.size < MAX_FOLLOWED && mayBeOfServer(uri)) uris.add(uri)
    return new Set(uris.size === 0 ? [] : await this.#namesOf([...uris]).catch(() => []))
  }

  /** A server that cannot be asked now is asked again: its revisions are others if something changed meanwhile. */
  async #askAll(address: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    for (let at = 0; at < names.length; at += MAX_WATCH_URIS)
      await this.#ask(address, names.slice(at, at + MAX_WATCH_URIS), signal).catch(() => {})
  }

  async #ask(address: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    const uris = names.map((name) => originOf(name)?.uri ?? '')
    const answer = await this.#context.value({ address, method: 'watch', params: { uris }, signal })
    const revisions: unknown = isRecord(answer) ? answer['revisions'] : null
    names.forEach((name, at) => {
      const given: unknown = Array.isArray(revisions) ? (revisions as readonly unknown[])[at] : null
      const revision = typeof given === 'string' ? given.slice(0, 64) : null
      const last = this.#revisions.get(name) ?? null
      this.#revisions.set(name, revision)
      if (last !== null && revision !== null && revision !== last) this.#tell(name)
    })
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
