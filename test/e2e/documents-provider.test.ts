import fs from 'node:fs/promises'
import path from 'node:path'
import * as slateYjs from '@slate-yjs/core'
import test, { type Assert } from 'brittle'
import { type BaseEditor, createEditor, type Descendant, Editor, Transforms } from 'slate'
import * as Y from 'yjs'
import { A2AProvider } from '../../src/client.js'
import { localMesh, type LocalNode, until, untilTrue } from '../support/nodes.js'

/** A Slate editor that shares its text. */
interface Shared extends BaseEditor {
  undo(): void
}

/** What is used of the binding; its own types do not resolve in ES modules. */
interface Binding {
  withYjs(editor: BaseEditor, root: Y.XmlText): BaseEditor
  withCursors(editor: BaseEditor, awareness: A2AProvider['awareness'], options: { readonly data: object }): BaseEditor
  withYHistory(editor: BaseEditor): Shared
  slateNodesToInsertDelta(nodes: readonly Descendant[]): { insert: string | Y.XmlText }[]
  readonly YjsEditor: { connect(editor: Shared): void; disconnect(editor: Shared): void }
  readonly CursorEditor: { sendCursorPosition(editor: Shared, range: Shared['selection']): void }
}

const { CursorEditor, slateNodesToInsertDelta, withCursors, withYHistory, withYjs, YjsEditor } =
  slateYjs as unknown as Binding

const PARAGRAPH = { type: 'paragraph', children: [{ text: 'Dear reader.' }] }

interface Desk {
  readonly doc: Y.Doc
  readonly provider: A2AProvider
  readonly editor: Shared
}

/** Resolves when a provider is synced. */
async function synced(provider: A2AProvider): Promise<void> {
  if (!provider.synced) await new Promise<void>((resolve) => provider.on('sync', (is) => is && resolve()))
}

/** A Slate editor over slate-yjs, as its manual makes one; only the provider is ours. */
async function admin(t: Assert, node: LocalNode): Promise<Desk> {
  const doc = new Y.Doc()
  const provider = new A2AProvider({ home: node.home }, 'letter', doc, { create: true })
  t.teardown(() => provider.destroy(), { order: -1 })
  provider.on('error', (error) => t.fail(error.message))
  await synced(provider)
  const shared = doc.get('content', Y.XmlText)
  const editor = withYHistory(
    withCursors(withYjs(createEditor(), shared), provider.awareness, { data: { name: node.name } })
  )
  YjsEditor.connect(editor)
  t.teardown(() => YjsEditor.disconnect(editor), { order: -2 })
  return { doc, provider, editor }
}

function textOf({ editor }: Desk): string {
  return editor.children.length === 0 ? '' : Editor.string(editor, [])
}

async function untilText(desks: readonly Desk[], fits: (text: string) => boolean, what: string): Promise<void> {
  await untilTrue(() => desks.every((one) => fits(textOf(one))), what)
}

function type({ editor }: Desk, text: string, at: 'start' | 'end'): void {
  Transforms.insertText(editor, text, { at: at === 'start' ? Editor.start(editor, []) : Editor.end(editor, []) })
}

test('an editor binding of others works over A2AProvider on two nodes: text, cursors, undo', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  const one = await admin(t, a)
  one.doc.get('content', Y.XmlText).applyDelta(slateNodesToInsertDelta([PARAGRAPH]))
  await one.provider.saved()
  await until(b.api, 'documents.list', {}, ({ documents }) => documents.length === 1)
  const two = await admin(t, b)
  await untilText([one, two], (text) => text === 'Dear reader.', 'the paragraph is on both')
  t.not(one.doc.clientID, two.doc.clientID)
  // Both type at once.
  type(one, 'My ', 'start')
  type(two, ' Yours.', 'end')
  await untilText([one, two], (text) => text === 'My Dear reader. Yours.', 'the edits of both are on both')
  Transforms.select(two.editor, Editor.end(two.editor, []))
  CursorEditor.sendCursorPosition(two.editor, two.editor.selection)
  const cursor = (): Record<string, unknown> | undefined => one.provider.awareness.getStates().get(two.doc.clientID)
  await untilTrue(
    () => cursor()?.['selection'] !== undefined && cursor()?.['selection'] !== null,
    'the cursor of the other is seen'
  )
  t.alike(cursor()?.['data'], { name: 'b' })
  two.editor.undo()
  await untilText([one, two], (text) => text === 'My Dear reader.', 'only what the one typed is undone')
  await Promise.all([one.provider.saved(), two.provider.saved()])
  await two.provider.destroy()
  await untilTrue(() => cursor() === undefined, 'a member that left is no longer seen')
  t.alike(Y.encodeStateVector(two.doc), Y.encodeStateVector(one.doc))
})

test('a large paste into a provider arrives whole at a provider of another node, beside an edit made there meanwhile', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  const providers = [a, b].map((node) => new A2AProvider({ home: node.home }, 'notes', new Y.Doc(), { create: true }))
  for (const provider of providers) {
    t.teardown(() => provider.destroy(), { order: -1 })
    provider.on('error', (error) => t.fail(error.message))
    await synced(provider)
  }
  const [one, two] = providers.map(({ doc }) => doc.getText('text')) as [Y.Text, Y.Text]
  one.insert(0, 'begin end')
  await providers[0]?.saved()
  await untilTrue(() => two.toJSON() === 'begin end', 'the first edit is there')
  const pasted = 'a paste 🌍. '.repeat(25_000)
  one.insert(6, pasted)
  two.insert(0, 'meanwhile ')
  await Promise.all(providers.map(async (provider) => await provider.saved()))
  const whole = `meanwhile begin ${pasted}end`
  await untilTrue(() => [one, two].every(({ length }) => length >= whole.length), 'the paste is on both')
  t.is(one.toJSON(), whole)
  t.is(two.toJSON(), whole)
})

test('a provider goes on when its node was restarted, and sends what was edited meanwhile, unless its node does not know it any more', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const doc = new Y.Doc()
  const provider = new A2AProvider(a.api, 'notes', doc, { create: true })
  t.teardown(() => provider.destroy(), { order: -1 })
  const seen: string[] = []
  provider.on('status', ({ status }) => void seen.push(status))
  await synced(provider)
  doc.getText('text').insert(0, 'kept. ')
  await provider.saved()
  const lost = new Promise<void>((resolve) => provider.on('sync', (is) => is || resolve()))
  await a.stop()
  await lost
  const again = await mesh.start('a', { home: a.home })
  await synced(provider)
  t.alike(seen.slice(0, 3), ['connecting', 'connected', 'disconnected'])
  t.is(seen.at(-1), 'connected')
  doc.getText('text').insert(0, 'more. ')
  await provider.saved()
  t.is((await again.cli(['doc', 'get', 'notes'])).stdout, 'more. kept. ')
  const gone = new Promise<void>((resolve) => provider.on('sync', (is) => is || resolve()))
  await again.stop()
  await gone
  doc.getText('text').insert(0, 'away. ')
  const last = await mesh.start('a', { home: a.home })
  await synced(provider)
  await provider.saved()
  t.is((await last.cli(['doc', 'get', 'notes'])).stdout, 'away. more. kept. ')
  // With its store of documents it forgets whose clientIDs were.
  const failed = new Promise<string>((resolve) => provider.on('error', ({ code }) => resolve(code)))
  const lostAgain = new Promise<void>((resolve) => provider.on('sync', (is) => is || resolve()))
  await last.stop()
  await lostAgain
  doc.getText('text').insert(0, 'lost. ')
  await fs.rm(path.join(a.home, 'documents'), { recursive: true })
  t.is((await mesh.run(['--home', a.home, 'doctor', '--repair'])).code, 0)
  await mesh.start('a', { home: a.home })
  t.is(await failed, 'CONFLICT')
})

test('a provider reports a document that is not there, may not be written, or was edited before its session', {
  timeout: 120_000
}, async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  const errorOf = (provider: A2AProvider, event: 'error' | 'connection-error'): Promise<string> => {
    t.teardown(() => provider.destroy(), { order: -1 })
    return new Promise((resolve) => provider.on(event, ({ code }) => resolve(code)))
  }
  t.is(await errorOf(new A2AProvider(b.api, 'none', new Y.Doc()), 'connection-error'), 'DOCUMENT_NOT_FOUND')
  await a.api.call('documents.create', { name: 'notes', write: { tier: null } })
  await until(b.api, 'documents.list', {}, ({ documents }) => documents.length === 1)
  const reader = new Y.Doc()
  const reading = new A2AProvider(b.api, 'notes', reader)
  const denied = errorOf(reading, 'error')
  await synced(reading)
  await a.api.call('documents.edit', { document: 'notes', edit: { type: 'text', text: 'read me' } })
  await untilTrue(() => reader.getText('text').toJSON() === 'read me', 'a reader sees the edits')
  reader.getText('text').insert(0, 'x')
  t.is(await denied, 'FORBIDDEN')
  const early = new Y.Doc()
  early.getText('text').insert(0, 'too early')
  t.is(await errorOf(new A2AProvider(a.api, 'notes', early), 'error'), 'CONFLICT')
})
