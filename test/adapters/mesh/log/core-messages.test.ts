import { createRequire } from 'node:module'
import test from 'brittle'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import { MAX_BLOCKS, readCoreMessage } from '../../../../src/adapters/mesh/log/core-messages.js'

const { wire } = createRequire(import.meta.url)('hypercore/lib/messages.js') as { wire: { data: Codec<unknown> } }
const DATA = 3

interface Proof {
  readonly request?: number
  readonly start?: number
  readonly length: number
  readonly roots: readonly number[]
  readonly block?: object | null
}

/** What is wrong with data that proves the roots of a tree. */
function fault({ request = 0, start = 0, length, roots, block = null }: Proof): string | null {
  const nodes = roots.map((index) => ({ index, size: 10, hash: new Uint8Array(32) }))
  const upgrade = { start, length, nodes, additionalNodes: nodes, signature: new Uint8Array(64) }
  const bytes = c.encode(wire.data, { request, fork: 0, block, hash: null, seek: null, upgrade, manifest: null })
  const message = Uint8Array.of(DATA, ...bytes)
  return readCoreMessage({ buffer: message, start: 0, end: message.byteLength }).fault
}

test('a proof of a fork has the roots of its tree, all of them and nothing else', (t) => {
  const good = [
    { length: 1, roots: [0] },
    { length: 2, roots: [1] },
    { length: 5, roots: [3, 8] },
    { length: 7, roots: [3, 9, 12] },
    { length: MAX_BLOCKS, roots: [MAX_BLOCKS - 1] }
  ]
  for (const one of good) t.is(fault(one), null, `${one.length} blocks`)
  const none = 'a proof of a fork that is none'
  for (const roots of [[3], [3, 8, 8], [8, 3], [3, 9], [], [1, 5, 8]])
    t.is(fault({ length: 5, roots }), none, roots.join(' '))
  const block = { index: 0, value: new Uint8Array(3), nodes: [] }
  t.is(fault({ length: 5, roots: [3, 8], block }), 'a proof of a fork with something beside it')
  t.ok(fault({ length: 2 ** 53 - 1, roots: [] }))
})

test('an upgrade to no block at all is refused, after any earlier messages', (t) => {
  const block = { index: 0, value: new Uint8Array(3), nodes: [{ index: 1, size: 3, hash: new Uint8Array(32) }] }
  for (const request of [0, 7]) {
    t.is(fault({ request, length: 0, roots: [] }), 'an upgrade to nothing')
    t.is(fault({ request, length: 0, roots: [0], block }), 'an upgrade to nothing')
  }
})

test('data that was asked for, or that begins later, is no proof of a fork', (t) => {
  const block = { index: 0, value: new Uint8Array(3), nodes: [] }
  t.is(fault({ request: 7, length: 5, roots: [8], block }), null)
  t.is(fault({ start: 4, length: 1, roots: [8] }), null)
})
