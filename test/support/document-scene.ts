import type { Assert } from 'brittle'
import * as Y from 'yjs'
import { asNodeError, type NodeError } from '../../src/kit/errors.js'
import type { DocumentLiveEvent } from '../../src/ports/document-api.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { type FakeNode, World } from './fake-node.js'

/** Two members and the owner, linked, with a document that ann created. */
export async function documentScene(
  t: Assert
): Promise<{ world: World; owner: FakeNode; ann: FakeNode; bob: FakeNode }> {
  const world = new World(t)
  const owner = await world.owner()
  const [ann, bob] = [await world.member('ann'), await world.member('bob')]
  await world.link(owner, ann, bob)
  await ann.api().call('documents.create', { name: 'notes' })
  return { world, owner, ann, bob }
}

/** Sets the text of the document. */
export function write(api: NodeApi, text: string): Promise<unknown> {
  return api.call('documents.edit', { document: 'notes', edit: { type: 'text', text } })
}

/** The text of the document on a node. */
export async function textOn(node: FakeNode): Promise<unknown> {
  return (await node.api().call('documents.read', { document: 'notes', type: 'text' })).value
}

/** A program that holds the document. */
export class Program {
  readonly events: DocumentLiveEvent[] = []
  doc = new Y.Doc()
  session = ''
  clientId: number | null = null
  /** Why its watch ended; null as long as it goes on. */
  fault: NodeError | null = null
  readonly #abort = new AbortController()
  readonly #api: NodeApi

  constructor(t: Assert, api: NodeApi) {
    this.#api = api
    void this.#run().catch((error: unknown) => (this.fault = asNodeError(error)))
    t.teardown(() => this.end())
  }

  async #run(): Promise<void> {
    for await (const event of this.#api.watch(
      'documents.live',
      { document: 'notes' },
      { signal: this.#abort.signal }
    )) {
      this.events.push(event)
      if (event.type === 'open' || event.type === 'reset') {
        this.doc = new Y.Doc()
        this.session = event.session
        this.clientId = event.clientId
      }
      if (event.type === 'open' || event.type === 'reset' || event.type === 'update')
        Y.applyUpdate(this.doc, event.update)
      // Behind what it holds already: Yjs takes another one where it reads what was written with this one.
      if (this.clientId !== null) this.doc.clientID = this.clientId
    }
  }

  get text(): string {
    return this.doc.getText('text').toJSON()
  }

  /** Edits its own document and hands the update over. */
  async type(at: number, text: string): Promise<unknown> {
    const before = Y.encodeStateVector(this.doc)
    this.doc.getText('text').insert(at, text)
    return await this.apply(Y.encodeStateAsUpdate(this.doc, before))
  }

  apply(update: Uint8Array): Promise<unknown> {
    return this.#api.call('documents.apply', { document: 'notes', session: this.session, update })
  }

  present(update: Uint8Array): Promise<unknown> {
    return this.#api.call('documents.awareness', { document: 'notes', session: this.session, update })
  }

  end(): void {
    this.#abort.abort()
  }
}
