import { setTimeout as delay } from 'node:timers/promises'
import { Load } from './load.mjs'

const DOCUMENT = 'prove'
/** Between two edits of one node, in milliseconds. */
const PAUSE_MS = 100

/** Edits of one document by all nodes, each of a key of its own: of each its node. */
export class Edits extends Load {
  ends = new Set(['on all nodes'])
  #reading = Promise.resolve([])
  /** Monotonic milliseconds. */
  #readAt = -Infinity

  async open() {
    const { fleet } = this.given
    await (await fleet.api(fleet.names[0])).call('documents.create', { name: DOCUMENT })
  }

  async drive(isDone) {
    // One each, so that nobody waits for a node that is down.
    await Promise.all(this.given.fleet.names.map((name) => this.repeat(1, isDone, () => this.#edit(name))))
  }

  /** Is the edit on every node? One reading of all nodes serves all edits that are looked at within a moment. */
  async look(key, name) {
    const maps = await this.#maps()
    const missing = this.given.fleet.names.filter((_, at) => maps[at][key] !== name)
    return { state: missing.length === 0 ? 'on all nodes' : `missing on ${missing.join(', ')}` }
  }

  faultOf() {
    return null
  }

  async #edit(name) {
    const key = this.newName('e')
    try {
      const api = await this.given.fleet.api(name)
      await api.call('documents.edit', { document: DOCUMENT, edit: { type: 'map', set: { [key]: name } } })
      this.accepted.set(key, name)
    } catch {
      // Not accepted: it may be there or not.
    }
    await delay(PAUSE_MS)
  }

  /** Resolves with the maps of all nodes. */
  #maps() {
    if (performance.now() - this.#readAt > 200) {
      this.#readAt = performance.now()
      this.#reading = Promise.all(this.given.fleet.names.map((name) => this.#mapOf(name)))
    }
    return this.#reading
  }

  async #mapOf(name) {
    const api = await this.given.fleet.api(name)
    const { value } = await api.call('documents.read', { document: DOCUMENT, type: 'map' }).catch(() => ({ value: {} }))
    return value
  }
}
