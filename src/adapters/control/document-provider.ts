import { setTimeout as delay } from 'node:timers/promises'
import { Awareness, applyAwarenessUpdate, encodeAwarenessUpdate, removeAwarenessStates } from 'y-protocols/awareness'
import * as Y from 'yjs'
import { mustCutUpdate } from '../../domain/document/update/cut.js'
import { writeDenied } from '../../domain/document/denied.js'
import { backoffMs } from '../../kit/backoff.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import type { DocumentLiveEvent } from '../../ports/document-api.js'
import type { NodeApi } from '../../ports/node-api.js'
import { UnsentEdits } from './unsent-edits.js'

/** Waits before a further try. */
const RETRY = { baseMs: 200, maxMs: 5000 }

/** Events of a provider. */
export interface ProviderEvents {
  status: { readonly status: 'connecting' | 'connected' | 'disconnected' }
  /** Does the Y.Doc hold every edit of the node? */
  sync: boolean
  /** It tries again. */
  'connection-error': NodeError
  /**
   * It is over: what was not sent yet stays in this Y.Doc alone. PAYLOAD_TOO_LARGE: a single value of an edit is over
   * 256 KiB.
   */
  error: NodeError
}

/** How a provider is made. */
export interface ProviderOptions {
  /** Presence to share. Default: one of its own, which ends with it. */
  readonly awareness?: Awareness
  /** Create the document when the mesh has none of that name. Default false. */
  readonly create?: boolean
}

type ProviderOpening = Extract<DocumentLiveEvent, { readonly session: string }>
type ProviderListener<E extends keyof ProviderEvents> = (value: ProviderEvents[E]) => void

/**
 * Keeps a Y.Doc equal to a document of a running node and shares presence (y-protocols), as providers of Yjs do. It
 * sets the clientID of the doc: begin with an empty Y.Doc and edit it once it is synced. It reconnects after a failure
 * and sends the edits of the meantime. It ends with CONFLICT when another program took its clientID or the document was
 * replaced; take a new Y.Doc then.
 */
export class DocumentProvider {
  readonly doc: Y.Doc
  readonly name: string
  readonly awareness: Awareness
  readonly #api: NodeApi
  readonly #options: ProviderOptions
  readonly #listeners = new Map<string, Set<ProviderListener<keyof ProviderEvents>>>()
  readonly #ending = new AbortController()
  readonly #over: Promise<void>
  #session: ProviderOpening | null = null
  #clientId: number | null = null
  readonly #unsent = new UnsentEdits()
  #isPresenceDue = false
  #sending: Promise<void> = Promise.resolve()
  #isSending = false
  /** Refused edits are sent again after a delay. */
  #isWaiting = false
  #refusals = 0
  #status: ProviderEvents['status']['status'] = 'disconnected'

  constructor(api: NodeApi, name: string, ...[doc, options = {}]: [doc: Y.Doc, options?: ProviderOptions]) {
    this.#api = api
    this.name = name
    this.doc = doc
    this.#options = options
    this.awareness = options.awareness ?? new Awareness(doc)
    doc.on('update', this.#onUpdate)
    doc.on('destroy', this.#onDestroy)
    this.awareness.on('update', this.#onPresence)
    this.#over = this.#run()
  }

  /** Does the Y.Doc hold every edit of the node? */
  get synced(): boolean {
    return this.#session !== null
  }

  /** Calls a function at each event of a kind. */
  on<E extends keyof ProviderEvents>(event: E, listener: ProviderListener<E>): void {
    const listeners = this.#listeners.get(event) ?? new Set()
    this.#listeners.set(event, listeners.add(listener as ProviderListener<keyof ProviderEvents>))
  }

  /** Calls it no more. */
  off<E extends keyof ProviderEvents>(event: E, listener: ProviderListener<E>): void {
    this.#listeners.get(event)?.delete(listener as ProviderListener<keyof ProviderEvents>)
  }

  /** Resolves when the node has every edit made until now. @throws NodeError when the provider ends before */
  saved(): Promise<void> {
    return this.#unsent.saved()
  }

  /** Ends it, once what was edited is with the node, or is refused by it; others hear that this client is gone. */
  async destroy(): Promise<void> {
    this.doc.off('update', this.#onUpdate)
    this.doc.off('destroy', this.#onDestroy)
    this.#isWaiting = false
    this.#send()
    await this.#sending
    this.#end(new NodeError('CANCELED', 'the provider was ended before the node had all edits', { next: [] }))
    await this.#over
    this.awareness.off('update', this.#onPresence)
    if (this.#options.awareness === undefined) this.awareness.destroy()
  }

  readonly #onDestroy = (): void => void this.destroy()

  readonly #onUpdate = (update: Uint8Array, origin: unknown): void => {
    if (origin === this) return
    this.#unsent.add(update)
    this.#send()
  }

  readonly #onPresence = (
    { added, updated, removed }: Record<'added' | 'updated' | 'removed', number[]>,
    origin: unknown
  ): void => {
    const isOwn = [...added, ...updated, ...removed].includes(this.awareness.clientID)
    // A newcomer has not heard of this client yet.
    if (origin === this ? added.length === 0 : !isOwn) return
    this.#isPresenceDue = true
    this.#send()
  }

  /** Sessions one after the other, until it is over. */
  async #run(): Promise<void> {
    let failures = 0
    // The caller adds its listeners first.
    await Promise.resolve()
    while (!this.#ending.signal.aborted) {
      this.#tellStatus('connecting')
      const error = await this.#follow().catch(asNodeError)
      const wasSynced = this.#lose()
      if (this.#ending.signal.aborted) return
      if (!error.retryable) return this.#fail(error)
      this.#emit('connection-error', error)
      failures = wasSynced ? 0 : failures + 1
      await delay(backoffMs(RETRY, failures), undefined, { signal: this.#ending.signal }).catch(() => {})
    }
  }

  /** One session, to its end; gives why it ended. */
  async #follow(): Promise<NodeError> {
    const { signal } = this.#ending
    if (this.#options.create === true) await this.#api.call('documents.create', { name: this.name }, { signal })
    const wanted = this.#clientId === null ? {} : { clientId: this.#clientId }
    for await (const line of this.#api.watch('documents.live', { document: this.name, ...wanted }, { signal })) {
      if (line.type === 'open') this.#begin(line)
      else if (line.type === 'update') Y.applyUpdate(this.doc, line.update, this)
      else if (line.type === 'awareness') applyAwarenessUpdate(this.awareness, line.update, this)
      else if (line.type === 'gap') break
      else return begunAnew('part of the document counts no longer')
    }
    return new NodeError('CHANNEL_CLOSED', 'the node ended the session of the document')
  }

  #begin(opening: ProviderOpening): void {
    const { clientId, update } = opening
    const vector = Y.encodeStateVectorFromUpdate(update)
    if (!this.#unsent.isEmpty && this.#clientId !== null && this.#clientId !== clientId)
      throw begunAnew('another program goes on with the session whose edits were not sent')
    this.#clientId = clientId
    // A binding may edit while the state is applied. Where the state has more of this clientID, Yjs would take another.
    if (clientId !== null && !hasChangesOf(clientId, this.doc, vector)) this.#takeClientId(clientId)
    Y.applyUpdate(this.doc, update, this)
    const missing = Y.encodeStateAsUpdate(this.doc, vector)
    const isForeign = Y.decodeUpdate(missing).structs.some(({ id }) => id.client !== clientId)
    if (isForeign || (clientId === null && !this.#unsent.isEmpty))
      throw begunAnew('the Y.Doc holds edits of a session that is over, or of none')
    if (clientId !== null) this.#takeClientId(clientId)
    this.#unsent.merge(missing)
    this.#session = opening
    this.#isPresenceDue = this.awareness.getLocalState() !== null
    this.#tellStatus('connected')
    this.#emit('sync', true)
    this.#isWaiting = false
    this.#send()
  }

  #takeClientId(clientId: number): void {
    this.doc.clientID = clientId
    if (this.awareness.clientID === clientId) return
    // Awareness of the former clientID is removed.
    const state = this.awareness.getLocalState()
    this.awareness.setLocalState(null)
    this.awareness.clientID = clientId
    if (state !== null) this.awareness.setLocalState(state)
  }

  /** Sends what there is, one call after the other; edits before the presence that points at them. */
  #send(): void {
    if (this.#isSending || this.#isWaiting || this.#session === null) return
    this.#isSending = true
    // Edits of one turn share one call.
    this.#sending = Promise.resolve()
      .then(async () => {
        for (let session = this.#session; session !== null && this.#isDue(); session = this.#session)
          await this.#sendNext(session)
      })
      .then(
        () => {
          this.#isSending = false
          this.#refusals = 0
        },
        (error: unknown) => {
          this.#isSending = false
          this.#refused(asNodeError(error))
        }
      )
  }

  #isDue(): boolean {
    return !this.#unsent.isEmpty || this.#isPresenceDue
  }

  async #sendNext({ session, clientId }: ProviderOpening): Promise<void> {
    const to = { document: this.name, session }
    const batch = this.#unsent.batch()
    if (batch.length > 0) {
      if (clientId === null) throw writeDenied({ name: this.name, creator: null, owner: null })
      const updates = batch.map((one) => one.update)
      const whole = updates.length === 1 ? (updates[0] as Uint8Array) : Y.mergeUpdates(updates)
      // Should one fail, all of them are sent again: what the node has of them it knows.
      for (const update of mustCutUpdate(whole)) await this.#api.call('documents.apply', { ...to, update })
      this.#unsent.sent(batch)
      return
    }
    this.#isPresenceDue = false
    const { clientID } = this.awareness
    if (!this.awareness.meta.has(clientID)) return
    await this.#api.call('documents.awareness', { ...to, update: encodeAwarenessUpdate(this.awareness, [clientID]) })
  }

  /** The same is sent again a while later, or at once in the next session: one that is over ends its watch as well. */
  #refused(error: NodeError): void {
    if (!error.retryable && !this.#ending.signal.aborted) return this.#fail(error)
    this.#emit('connection-error', error)
    if (this.#ending.signal.aborted) return
    this.#isWaiting = true
    void delay(backoffMs(RETRY, this.#refusals++), undefined, { signal: this.#ending.signal }).then(
      () => {
        this.#isWaiting = false
        this.#send()
      },
      () => {}
    )
  }

  #fail(error: NodeError): void {
    this.#end(error)
    this.#lose()
    this.#emit('error', error)
  }

  #end(fault: NodeError): void {
    this.#ending.abort()
    this.#unsent.fail(fault)
  }

  /** Was there a session? Others are present only through one. */
  #lose(): boolean {
    const wasSynced = this.#session !== null
    this.#session = null
    const others = [...this.awareness.getStates().keys()].filter((client) => client !== this.awareness.clientID)
    removeAwarenessStates(this.awareness, others, this)
    this.#tellStatus('disconnected')
    if (wasSynced) this.#emit('sync', false)
    return wasSynced
  }

  #tellStatus(status: ProviderEvents['status']['status']): void {
    if (this.#status === status) return
    this.#status = status
    this.#emit('status', { status })
  }

  #emit<E extends keyof ProviderEvents>(event: E, value: ProviderEvents[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) (listener as ProviderListener<E>)(value)
  }
}

function hasChangesOf(client: number, doc: Y.Doc, vector: Uint8Array): boolean {
  return (Y.decodeStateVector(vector).get(client) ?? 0) > Y.getState(doc.store, client)
}

function begunAnew(why: string): NodeError {
  return new NodeError('CONFLICT', `${why}: begin with a new Y.Doc`, { next: ['a2a-node doc show <doc>'] })
}
