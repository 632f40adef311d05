import { createHash } from 'node:crypto'
import { isRecord } from '../../../kit/json.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { Conversation } from '../../../domain/gateway/conversation.js'

/** Contexts at remote agents that are kept; the one used longest ago is dropped first. */
export const MAX_REMOTE_CONTEXTS = 2000
/** Name of the stored document. */
const DOCUMENT = 'a2a-contexts'
/** Characters of a key. */
const KEY_LENGTH = 22

/**
 * Dependencies of {@link RemoteContexts}. `store`: keeps them across restarts. `onFault`: receives its errors.
 */
export interface RemoteContextsDeps {
  readonly store: Pick<NodeStore, 'read' | 'write'>
  onFault(error: unknown): void
}

/** The context at a remote agent for each context of a caller. */
export class RemoteContexts {
  readonly #deps: RemoteContextsDeps
  readonly #known = new Map<string, string>()
  #loading: Promise<void> | null = null
  /** Writes run one after the other; a waiting write includes the contexts learned meanwhile. */
  #writing: Promise<void> = Promise.resolve()
  #waiting: Promise<void> | null = null

  constructor(deps: RemoteContextsDeps) {
    this.#deps = deps
  }

  /** The context at an agent for that of a conversation; null: none yet. Never rejects. */
  async of(agent: string, conversation: Conversation): Promise<string | null> {
    await (this.#loading ??= this.#load())
    return this.#known.get(keyOf(agent, conversation)) ?? null
  }

  /** Keeps a context. Resolves when it is stored. Never rejects. */
  async put(agent: string, conversation: Conversation, contextId: string): Promise<void> {
    await (this.#loading ??= this.#load())
    const key = keyOf(agent, conversation)
    const before = this.#known.get(key)
    this.#known.delete(key)
    this.#known.set(key, contextId)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_REMOTE_CONTEXTS) break
      this.#known.delete(oldest)
    }
    if (before === contextId) return
    this.#waiting ??= this.#writing = this.#writing.then(() => this.#write())
    await this.#waiting
  }

  async #load(): Promise<void> {
    try {
      const kept = await this.#deps.store.read(DOCUMENT)
      for (const [key, context] of Object.entries(isRecord(kept) ? kept : {}))
        if (typeof context === 'string') this.#known.set(key, context)
    } catch (error) {
      this.#deps.onFault(error)
    }
  }

  async #write(): Promise<void> {
    this.#waiting = null
    await this.#deps.store.write(DOCUMENT, Object.fromEntries(this.#known)).catch(this.#deps.onFault)
  }
}

function keyOf(agent: string, { contextId, caller: { node = '', kind, id } }: Conversation): string {
  const place = JSON.stringify([agent, node, kind, id, contextId])
  return createHash('sha256').update(place).digest('base64url').slice(0, KEY_LENGTH)
}
