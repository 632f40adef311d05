import * as Y from 'yjs'
import { encodeBlock } from '../../../build/src/domain/document/block.js'
import { clientIdOf } from '../../../build/src/domain/document/client-ids.js'
import { Replica } from '../../../build/src/domain/document/replica.js'
import { hash } from '../../../build/src/adapters/mesh/network/sodium.js'
import { keyToText, utf8 } from '../../../build/src/kit/ids.js'
import { openBlock, sealBlock } from '../../../build/src/node/documents/local-streams.js'
import { openLab } from '../lab.mjs'
import { inTurn, localMesh, startNode, times, untilPeer } from '../nodes.mjs'

const DOCUMENT = 'bench'
const EDITS = 10_000
/** Calls at once while they are made. */
const AT_ONCE = 50
/** Of bulk edits: updates in a block, and blocks. */
const BULK = 100
const BLOCKS = 100

/** One edit until another process has it, a long absence made up for, and what the checks cost beside Yjs. */
export async function figures({ runs, say }) {
  const lab = openLab()
  try {
    const cost = await times(runs + 1, () => costOfChecks())
    const [a, ...others] = await localMesh(lab, ['a', 'b', 'c', 'd'])
    const [b] = others
    await a.api.call('documents.create', { name: DOCUMENT })
    const seen = await visible(a, b, runs * 20)
    say(`${EDITS} edits while the others are away ...`)
    const merged = await absence(lab, a, others)
    return [
      {
        name: 'an edit of 20 characters on another process',
        unit: 'ms',
        goal: 10,
        samples: seen,
        note: 'from the call on one node to the line of a watch of the other: both control APIs are in it'
      },
      {
        name: `${EDITS} edits after an absence`,
        unit: 'ms',
        goal: 2000,
        samples: merged,
        note: 'each a block of its own; from when a node that was away sees their author online to when its document has them all'
      },
      {
        name: 'CPU of checked bulk edits beside Yjs alone',
        unit: 'x',
        goal: 1.5,
        samples: cost.slice(1),
        note: `${BLOCKS} blocks of ${BULK} updates as the road in takes them, envelope to document; fetching them is not in it`
      }
    ]
  } finally {
    await lab.close()
  }
}

function edit(node, splice) {
  return node.api.call('documents.edit', { document: DOCUMENT, edit: { type: 'text', splice } })
}

async function visible(a, b, count) {
  await edit(a, { at: 0, remove: 0, insert: 'x'.repeat(1000) })
  await untilLength(b, 1000)
  const abort = new AbortController()
  const lines = b.api.watch('documents.live', { document: DOCUMENT }, { signal: abort.signal })[Symbol.asyncIterator]()
  await lines.next()
  const samples = await times(count, async (index) => {
    const from = performance.now()
    const heard = lines.next().then(() => performance.now())
    await edit(a, { at: (index * 37) % 1000, remove: 0, insert: String(index).padStart(20, '.') })
    return (await heard) - from
  })
  abort.abort()
  return samples
}

async function untilLength(node, length) {
  for await (const { value } of node.api.watch('documents.read', { document: DOCUMENT, type: 'text' }))
    if (value.length >= length) return performance.now()
}

async function absence(lab, a, others) {
  const before = (await a.api.call('documents.read', { document: DOCUMENT, type: 'text' })).value.length
  for (const node of others) {
    await untilLength(node, before)
    await node.stop()
  }
  for (let done = 0; done < EDITS; done += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) =>
        edit(a, { at: ((done + index) * 31) % 1000, remove: 0, insert: 'e' })
      )
    )
  }
  return await inTurn(others, async ({ home, name, env }) => {
    const back = await startNode(lab, { home, name, env })
    const from = await untilPeer(back, a.name, 'online')
    const merged = (await untilLength(back, before + EDITS)) - from
    await back.stop()
    return merged
  })
}

/** CPU of the road in for bulk edits, as a multiple of that of Yjs for the same updates. */
async function costOfChecks() {
  const own = keyToText(hash(utf8('bench')))
  const updates = bulk(clientIdOf({ stream: own, number: 0 }, hash))
  const ids = { next: (prefix) => `${prefix}_1` }
  const sealing = { document: DOCUMENT, self: own, tier: 1, ids, at: 1 }
  const blocks = Array.from({ length: BLOCKS }, (_, at) =>
    sealBlock(encodeBlock({ sessions: 1, updates: updates.slice(at * BULK, (at + 1) * BULK) }), sealing)
  )
  const doc = new Y.Doc()
  const plain = cpuMs(() => {
    for (const update of updates) Y.applyUpdate(doc, update)
  })
  const replica = new Replica({ guid: DOCUMENT, hash, own: null })
  const checked = cpuMs(() => {
    for (const [index, bytes] of blocks.entries())
      replica.receive({ stream: own, index, bytes: openBlock(bytes, DOCUMENT) })
  })
  if (replica.doc.getText('text').toJSON() !== doc.getText('text').toJSON()) throw new Error('the two are not equal')
  return checked / plain
}

function bulk(clientId) {
  const doc = new Y.Doc()
  doc.clientID = clientId
  const updates = []
  doc.on('update', (update) => updates.push(update))
  const text = doc.getText('text')
  for (let at = 0; at < BULK * BLOCKS; at++) {
    if (at % 5 === 4) text.delete((at * 17) % text.length, 1)
    else text.insert((at * 31) % (text.length + 1), 'twenty characters ..')
  }
  return updates
}

function cpuMs(run) {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
