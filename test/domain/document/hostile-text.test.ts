import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import test, { type Assert } from 'brittle'
import * as Y from 'yjs'

const SHARED = fileURLToPath(new URL('../../../src/domain/document/shared-types.js', import.meta.url))
/** Much more than the documents here take, and much less than each piece of them with all of its formats. */
const OLD_MB = 192

/** Does something with a document in as little memory as a small machine has left, and gives what comes of it. */
async function inLittleMemory(doc: Y.Doc, body: string): Promise<unknown> {
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    Promise.all([import('yjs'), import(workerData.shared)]).then(([Y, { readShared, editShared, sharedParts }]) => {
      const doc = new Y.Doc()
      Y.applyUpdate(doc, workerData.update)
      ${body}
    })`
  const workerData = { shared: SHARED, update: Y.encodeStateAsUpdate(doc) }
  const worker = new Worker(code, { eval: true, workerData, resourceLimits: { maxOldGenerationSizeMb: OLD_MB } })
  const [told] = (await once(worker, 'message')) as [unknown]
  await worker.terminate()
  return told
}

/** A text with something embedded in it many times, where many formats are open. */
function formatted(text: Y.Text): void {
  const formats = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`k${i}`, {}]))
  text.insert(0, 'ab', formats)
  for (let i = 0; i < 5_000; i++) text.insertEmbed(1, {}, formats)
}

test('a text is set in little memory, however many formats are open around however many pieces of it', async (t: Assert) => {
  const doc = new Y.Doc()
  doc.transact(() => formatted(doc.getText('text')))
  const told = await inLittleMemory(
    doc,
    `editShared(doc, 'text', { type: 'text', text: 'acb' })
     parentPort.postMessage([readShared(doc, 'text', 'text'), doc.getText('text').length])`
  )
  t.alike(told, ['acb', 5_003])
})

test('markup that others made very long of little is a fault, and the other parts are read', async (t: Assert) => {
  const doc = new Y.Doc()
  doc.transact(() => {
    doc.getText('text').insert(0, 'some')
    const text = new Y.XmlText()
    doc.getXmlFragment('formats').insert(0, [text])
    formatted(text)
    let inner = new Y.XmlText()
    doc.getXmlFragment('quotes').insert(0, [inner])
    // Each level writes those inside of it as JSON, with twice as many signs around its quotes.
    for (let i = 0; i < 40; i++) {
      const map = new Y.Map()
      inner.insertEmbed(0, map)
      inner = new Y.XmlText()
      map.set('inner', inner)
    }
    inner.insert(0, '"')
  })
  const fault = 'its markup is longer than 67108864 characters'
  t.alike(await inLittleMemory(doc, 'parentPort.postMessage(sharedParts(doc))'), [
    { root: 'formats', type: 'xml', value: null, fault },
    { root: 'quotes', type: 'xml', value: null, fault },
    { root: 'text', type: 'text', value: 'some' }
  ])
})
