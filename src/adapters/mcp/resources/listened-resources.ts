import { isRecord } from '../../../kit/json.js'
import { nameOf, type ResourceSource } from './resource-source.js'

/** URIs of one connection's requests that are resolved for a change, beside the URI of the change. */
export const MAX_LISTENED = 1024

/**
 * The resources that clients of one connection listen to (`subscriptions/listen`). Clients are notified by the URI that
 * they gave, which may differ from the URI of the source.
 */
export class ListenedResources {
  readonly #source: ResourceSource
  readonly #listens: () => Iterable<Readonly<Record<string, unknown>>>
  /** The source's name for the resource of each URI. */
  #names = new Map<string, Promise<string | undefined>>()

  /** `listens`: parameters of the requests that wait for changes now. */
  constructor(source: ResourceSource, listens: () => Iterable<Readonly<Record<string, unknown>>>) {
    this.#source = source
    this.#listens = listens
  }

  /** A resource came or went: a URI may mean another one now. */
  forget(): void {
    this.#names = new Map()
  }

  /**
   * Calls back with every URI by which a changed resource may be listened to: its name at once, others when they are
   * resolved to it.
   */
  changed(name: string, tell: (uri: string) => void): void {
    tell(name)
    const last = this.#names
    this.#names = new Map()
    for (const uri of this.uris()) {
      const found = last.get(uri) ?? this.#nameOf(uri)
      this.#names.set(uri, found)
      if (uri !== name) void found.then((one) => one === name && tell(uri))
    }
  }

  /** The URIs that clients gave. */
  uris(): ReadonlySet<string> {
    const uris = new Set<string>()
    for (const { notifications } of this.#listens()) {
      const given: unknown = isRecord(notifications) ? notifications['resourceSubscriptions'] : undefined
      for (const uri of Array.isArray(given) ? (given as unknown[]) : []) {
        if (uris.size >= MAX_LISTENED) return uris
        if (typeof uri === 'string') uris.add(uri)
      }
    }
    return uris
  }

  async #nameOf(uri: string): Promise<string | undefined> {
    try {
      return await nameOf(this.#source, uri, new AbortController().signal)
    } catch {
      // It is refused, or means none in particular.
      return undefined
    }
  }
}
