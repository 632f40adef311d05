import type { Client, McpSubscription } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { RunCaller } from '../../../ports/agent-runtime.js'
import { callerMeta, inRounds } from './caller-requests.js'
import { type ContextIndex, type ContextKind, MAX_LISTED, NO_CONTEXT, readIndex } from './context-index.js'
import { listPage, MAX_LIST_BYTES, readPages } from './imported-pages.js'

/** How long a server may take to list its resources and prompts, in milliseconds; its tools do not wait for them. */
const CONTEXT_TIMEOUT_MS = 5000
/** Shortest time between two readings of its resources and prompts, in milliseconds. */
export const CONTEXT_GAP_MS = 5000
/** How long they are good without news, in milliseconds. */
const CONTEXT_TTL_MS = 240_000
/** How long a server may take to begin to report changes of resources, in milliseconds. */
const WATCH_TIMEOUT_MS = 10_000
/** Longest time of the library's own timers; the node has its own deadlines. */
const NEVER_MS = 2_147_483_647

const WAIT = { timeout: WATCH_TIMEOUT_MS }
const anything = z.looseObject({})
const METHODS = {
  resources: ['resources/list', 'resource'],
  templates: ['resources/templates/list', 'resource template'],
  prompts: ['prompts/list', 'prompt']
} as const
const MEMBERS = { resources: 'resources', templates: 'resourceTemplates', prompts: 'prompts' } as const

/** Methods of a server that read. */
export type ReadMethod = 'resources/read' | 'prompts/get' | 'completion/complete'

/** How one reading is followed. Only prompts may ask the caller. */
export interface ReadRun {
  readonly signal: AbortSignalLike
  readonly caller?: RunCaller | undefined
}

/** Dependencies of {@link ContextConnection}. */
export interface ContextConnectionDeps {
  readonly client: Client
  readonly clock: Clock
  /** Awaits an answer; a failure becomes ImportedFault, and is reported to the link. */
  ask<T>(answer: Promise<T>): Promise<T>
  /** Asks what a caller wants to read. Its answer is as that of {@link ask}. */
  read<T>(ask: () => Promise<T>): Promise<T>
  /** The lists may have changed: they are to be read again. */
  onChanged(): void
  onNote(note: string): void
}

/** The resources and prompts of a server, over its open connection. */
export class ContextConnection {
  readonly #deps: ContextConnectionDeps
  #index: ContextIndex = NO_CONTEXT
  #readAt: number | null = null
  #isDirty = false
  #isDue = false
  #note: string | null = null
  /** Resources whose changes the server reports. */
  #watched: ReadonlySet<string> = new Set()
  #listening: McpSubscription | null = null
  #onUpdated: (uri: string) => void = () => {}

  constructor(deps: ContextConnectionDeps) {
    this.#deps = deps
    deps.client.setNotificationHandler('notifications/resources/updated', ({ params }) => this.#onUpdated(params.uri))
  }

  /** The server says that a list changed: one reading follows, however many say so. */
  changed(): void {
    const { clock, onChanged } = this.#deps
    if (this.#isDue) return
    this.#isDue = true
    const since = this.#readAt === null ? CONTEXT_GAP_MS : clock.monotonic() - this.#readAt
    clock.after(Math.max(0, CONTEXT_GAP_MS - since), () => {
      this.#isDue = false
      this.#isDirty = true
      onChanged()
    })
  }

  /** The lists of the server, read again when they may have changed; of a list that fails, the last one. */
  async index(signal: AbortSignal): Promise<ContextIndex> {
    const { clock } = this.#deps
    const now = clock.monotonic()
    if (!this.#isDirty && this.#readAt !== null && now - this.#readAt < CONTEXT_TTL_MS) return this.#index
    this.#isDirty = false
    this.#readAt = now
    const stop = new AbortController()
    const timer = clock.after(CONTEXT_TIMEOUT_MS, () => stop.abort())
    const [resources, templates, prompts] = await Promise.all(
      (['resources', 'templates', 'prompts'] as const).map((kind) =>
        this.#list(kind, AbortSignal.any([signal, stop.signal]))
      )
    )
    clock.clear(timer)
    const { completions, resources: able } = this.#deps.client.getServerCapabilities() ?? {}
    this.#index = await readIndex({
      resources,
      templates,
      prompts,
      completes: completions !== undefined,
      watches: able?.subscribe === true,
      instructions: this.#deps.client.getInstructions()
    })
    return this.#index
  }

  /** Asks once, and again with the answers of the caller to questions in the result. @throws ImportedFault */
  async read(method: ReadMethod, params: Record<string, unknown>, run: ReadRun): Promise<unknown> {
    const { client, read } = this.#deps
    const options = { signal: run.signal as AbortSignal, timeout: NEVER_MS }
    if (method !== 'prompts/get' || client.getProtocolEra() !== 'modern')
      return await read(() => client.request({ method, params }, anything, options))
    const asking = { ...options, allowInputRequired: true }
    const _meta = callerMeta(run.caller)
    return await inRounds(
      run,
      async (answers) =>
        await read(() => client.request({ method, params: { ...params, ...answers, _meta } }, anything, asking))
    )
  }

  /**
   * Has the server report the changes of these resources and of no others; resolves with those it reports.
   * @throws ImportedFault
   */
  async watch(uris: ReadonlySet<string>, onUpdated: (uri: string) => void): Promise<ReadonlySet<string>> {
    const { client } = this.#deps
    this.#onUpdated = onUpdated
    const isSame = uris.size === this.#watched.size && [...uris].every((uri) => this.#watched.has(uri))
    if (isSame) return this.#watched
    this.#watched = client.getProtocolEra() === 'modern' ? await this.#listen(uris) : await this.#subscribe(uris)
    return this.#watched
  }

  async #list(kind: ContextKind, signal: AbortSignal): Promise<readonly unknown[]> {
    const { client, ask } = this.#deps
    const able = client.getServerCapabilities() ?? {}
    if ((kind === 'prompts' ? able.prompts : able.resources) === undefined) return []
    const [method, item] = METHODS[kind]
    const bounds = { item, maxItems: MAX_LISTED[kind], maxBytes: MAX_LIST_BYTES, isCut: true }
    try {
      const { items, note } = await readPages(async (cursor) => {
        const params = cursor === null ? {} : { cursor }
        const page = await ask(client.request({ method, params }, listPage, { signal, timeout: NEVER_MS }))
        const given: unknown = page[MEMBERS[kind]]
        return { items: Array.isArray(given) ? (given as readonly unknown[]) : [], nextCursor: page.nextCursor }
      }, bounds)
      if (note !== null) this.#noted(`${note}; the list was ended there`)
      return items
    } catch (error) {
      // Servers that announce resources often have no templates.
      if (kind !== 'templates') this.#noted(`its ${item} list could not be read: ${messageOf(error)}`)
      return this.#index[kind]
    }
  }

  async #listen(uris: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { client, ask } = this.#deps
    const former = this.#listening
    // Where it cannot be opened, the former one goes on.
    const opened = uris.size === 0 ? null : await ask(client.listen({ resourceSubscriptions: [...uris] }, WAIT))
    this.#listening = opened
    void opened?.closed.then(() => {
      if (this.#listening !== opened) return
      this.#listening = null
      // The next `watch` opens another; changes until then are not reported.
      const watched = this.#watched
      this.#watched = new Set()
      for (const uri of watched) this.#onUpdated(uri)
    })
    await former?.close()
    return new Set(this.#listening?.honoredFilter.resourceSubscriptions ?? [])
  }

  async #subscribe(uris: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { client, ask } = this.#deps
    const watched = new Set([...this.#watched].filter((uri) => uris.has(uri)))
    const gone = [...this.#watched].filter((uri) => !uris.has(uri))
    // Together: a server may be deaf to them.
    await Promise.all(
      gone.map((uri) =>
        client.unsubscribeResource({ uri }, WAIT).catch((error: unknown) => this.#noted(messageOf(error)))
      )
    )
    const fresh = [...uris].filter((uri) => !watched.has(uri))
    // One that the server does not know must not hide the others.
    const done = await Promise.allSettled(fresh.map((uri) => ask(client.subscribeResource({ uri }, WAIT))))
    fresh.forEach((uri, at) => done[at]?.status === 'fulfilled' && watched.add(uri))
    return watched
  }

  #noted(note: string): void {
    if (note !== this.#note) this.#deps.onNote(note)
    this.#note = note
  }
}
