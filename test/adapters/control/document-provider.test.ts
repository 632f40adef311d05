import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import { DocumentProvider } from '../../../src/adapters/control/document-provider.js'
import { readUpdate } from '../../../src/domain/document/update/update.js'
import { asNodeError, NodeError } from '../../../src/kit/errors.js'
import { AsyncQueue } from '../../../src/kit/queue.js'
import type { DocumentLiveEvent } from '../../../src/ports/document-api.js'
import type { NodeApi } from '../../../src/ports/node-api.js'

const CLIENT = 7

/** A node that answers as the test says. */
class Node {
  /** The document as the node has it. */
  readonly doc = new Y.Doc()
  readonly provider: DocumentProvider
  readonly applied: Uint8Array[] = []
  /** What becomes of the next updates; each is taken once this resolves. */
  answer: () => Promise<void> = () => Promise.resolve()
  #lines = new AsyncQueue<DocumentLiveEvent>(100, null)
  #sessions = 0

  constructor(t: Assert) {
    const call = async (name: string, { update }: { readonly update: Uint8Array }): Promise<unknown> => {
      if (name !== 'documents.apply') return {}
      await this.answer()
      this.applied.push(update)
      Y.applyUpdate(this.doc, update)
      return { applied: true }
    }
    const api = {
      call,
      watch: (_name: string, _params: unknown, { signal }: { readonly signal: AbortSignal }) => this.#watch(signal)
    } as unknown as NodeApi
    this.provider = new DocumentProvider(api, 'notes', new Y.Doc())
    t.teardown(() => this.provider.destroy())
  }

  /** Ends the session; the next one begins soon. */
  cut(): void {
    this.#lines.end()
  }

  get text(): string {
    return this.doc.getText('text').toJSON()
  }

  type(text: string): void {
    const shared = this.provider.doc.getText('text')
    shared.insert(shared.length, text)
  }

  #watch(signal: AbortSignal): AsyncIterable<DocumentLiveEvent> {
    this.#lines = new AsyncQueue<DocumentLiveEvent>(100, null, signal)
    this.#lines.push({
      type: 'open',
      session: `session ${this.#sessions++}`,
      clientId: CLIENT,
      update: Y.encodeStateAsUpdate(this.doc)
    })
    return this.#lines
  }
}

function next(
  provider: DocumentProvider,
  event: 'sync' | 'connection-error',
  fits: (value: unknown) => boolean = () => true
): Promise<unknown> {
  return new Promise((resolve) => {
    const listener = (value: unknown): void => {
      if (!fits(value)) return
      provider.off(event, listener)
      resolve(value)
    }
    provider.on(event, listener)
  })
}

const isTrue = (value: unknown): boolean => value === true

test('an edit that the node refuses for now is sent again, and reported as saved when the node has it', async (t: Assert) => {
  const node = new Node(t)
  await next(node.provider, 'sync', isTrue)
  let refusals = 2
  node.answer = () => (refusals-- > 0 ? Promise.reject(new NodeError('DISK_FULL', 'no room')) : Promise.resolve())
  const errors: unknown[] = []
  node.provider.on('connection-error', ({ code }) => void errors.push(code))
  node.type('kept')
  await node.provider.saved()
  t.is(node.text, 'kept')
  t.alike(errors, ['DISK_FULL', 'DISK_FULL'])
  await node.provider.saved()
  t.is(node.applied.length, 1)
})

test('an edit that is on its way when the session ends is not forgotten in the next one', async (t: Assert) => {
  const node = new Node(t)
  await next(node.provider, 'sync', isTrue)
  let take = (): void => {}
  const isAsked = new Promise<void>((asked) => {
    node.answer = () =>
      new Promise((resolve) => {
        take = resolve
        asked()
      })
  })
  node.type('first. ')
  await isAsked
  node.type('second. ')
  const [isSynced, isSaved] = [next(node.provider, 'sync', isTrue), node.provider.saved()]
  node.cut()
  await isSynced
  node.answer = () => Promise.resolve()
  take()
  await isSaved
  t.is(node.text, 'first. second. ')
})

test('a caller that waits for a provider to save gets an error when the provider ends first', async (t: Assert) => {
  const node = new Node(t)
  await next(node.provider, 'sync', isTrue)
  node.answer = () => Promise.reject(new NodeError('FORBIDDEN', 'not any more'))
  node.type('lost')
  const codeOf = (saving: Promise<void>): Promise<string> =>
    saving.then(
      () => 'saved',
      (error: unknown) => asNodeError(error).code
    )
  t.is(await codeOf(node.provider.saved()), 'FORBIDDEN')
  t.is(await codeOf(node.provider.saved()), 'FORBIDDEN')
  const away = new Node(t)
  away.answer = () => Promise.reject(new NodeError('DISK_FULL', 'no room'))
  await next(away.provider, 'sync', isTrue)
  away.type('lost')
  const saving = codeOf(away.provider.saved())
  await away.provider.destroy()
  t.is(await saving, 'CANCELED')
})

test('a large paste is sent in pieces that a node accepts, and continues after a refused piece', async (t: Assert) => {
  const node = new Node(t)
  await next(node.provider, 'sync', isTrue)
  let calls = 0
  node.answer = () => (++calls === 2 ? Promise.reject(new NodeError('DISK_FULL', 'no room')) : Promise.resolve())
  node.type('before. ')
  await node.provider.saved()
  calls = 0
  node.type('🌍'.repeat(150_000))
  node.type(' after')
  await node.provider.saved()
  t.ok(node.text === `before. ${'🌍'.repeat(150_000)} after`)
  t.ok(calls > 3, `${calls} calls`)
  for (const update of node.applied) t.ok(readUpdate(update).ok)
})

test('a provider ends with the reason at a single value that no node takes, and the node has what came before', async (t: Assert) => {
  const node = new Node(t)
  await next(node.provider, 'sync', isTrue)
  const failed = new Promise<NodeError>((resolve) => node.provider.on('error', resolve))
  node.type('kept')
  node.provider.doc.getMap('map').set('key', 'x'.repeat(300_000))
  const { code, message } = await failed
  t.is(code, 'PAYLOAD_TOO_LARGE')
  t.ok(message.includes('a single value'), message)
  t.is(node.text, 'kept')
})
