import { BoundedMap } from '../../../kit/bounded.js'
import { isRecord } from '../../../kit/json.js'

/** Links of results that are remembered for one caller; the oldest goes first. */
const MAX_LINKS = 1024
/** Characters of a remembered URI. */
const MAX_URI = 4096

/** Links in tool results, and the agents that gave them: servers link to resources that they do not list. */
export class SeenLinks {
  readonly #addresses = new BoundedMap<string, string>(MAX_LINKS)

  /** Remembers the links in content of an agent. */
  note(address: string, content: readonly unknown[]): void {
    for (const block of content) {
      const { type, uri } = isRecord(block) ? block : {}
      if (type === 'resource_link' && typeof uri === 'string' && uri.length <= MAX_URI)
        this.#addresses.setNewest(uri, address)
    }
  }

  /** The agent that gave a link last; undefined: none did. */
  addressOf(uri: string): string | undefined {
    return this.#addresses.get(uri)
  }
}
