import { createHash } from 'node:crypto'
import { isRecord } from '../../../kit/json.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { Conversation } from '../../../domain/gateway/conversation.js'

/**
 * Contexts at remote agents that are kept. Of the node with the most, the caller with the most loses the one that it
 * used longest ago.
 */
export const MAX_REMOTE_CONTEXTS = 2000
/** Name of the stored document. */
const DOCUMENT = 'a2a-contexts'
/** Characters of a key: first those of the node of its caller, then those of the caller, then those of the context. */
const [NODE_LENGTH, CALLER_LENGTH, CONTEXT_LENGTH] = [8, 8, 22]

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
    while (this.#known.size > MAX_REMOTE_CONTEXTS) this.#drop()
    if (before === contextId) return
    this.#waiting ??= this.#writing = this.#writing.then(() => this.#write())
    await this.#waiting
  }

  /** Makes space for one. A node names its callers itself, so its share is that of all of them. */
  #drop(): void {
    const keys = [...this.#known.keys()]
    const ofNode = largestGroup(keys, NODE_LENGTH)
    const [oldest] = largestGroup(ofNode, NODE_LENGTH + CALLER_LENGTH)
    if (oldest !== undefined) this.#known.delete(oldest)
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

/** The most keys with the same beginning, in their order. */
function largestGroup(keys: readonly string[], length: number): readonly string[] {
  const groups = new Map<string, string[]>()
  let largest: readonly string[] = []
  for (const key of keys) {
    const name = key.slice(0, length)
    const group = groups.get(name) ?? []
    group.push(key)
    groups.set(name, group)
    if (group.length > largest.length) largest = group
  }
  return largest
}

function keyOf(agent: string, { contextId, caller: { node = '', kind, id } }: Conversation): string {
  const names: readonly (readonly [number, readonly string[]])[] = [
    [NODE_LENGTH, [node]],
    [CALLER_LENGTH, [kind, id]],
    [CONTEXT_LENGTH, [agent, node, kind, id, contextId]]
  ]
  return names.map(([length, all]) => hashOf(all).slice(0, length)).join('')
}

function hashOf(names: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(names)).digest('base64url')
}
