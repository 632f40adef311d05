import test from 'brittle'
import fc from 'fast-check'
import { BlockWindow } from '../../../../src/adapters/mesh/links/block-window.js'
import { holds } from '../../../support/holds.js'

const WINDOW = 262_144

/** What is known of a stream: what its writer signed, or the bytes of a block that came. */
const known = fc.oneof(
  fc.record({ blocks: fc.nat(2 ** 24), bytes: fc.nat(2 ** 40) }),
  fc.record({ took: fc.oneof(fc.nat(4096), fc.nat(2 ** 24)) })
)

test('after any block no more are asked for than the window has bytes for, if all are like it, but always one', async (t) => {
  await holds(
    t,
    fc.property(fc.array(known, { maxLength: 50 }), (events) => {
      const window = new BlockWindow()
      for (const event of events) {
        const before = window.blocks
        if ('took' in event) window.took(event.took)
        else window.signed(event.blocks, event.bytes)
        const { blocks } = window
        if (!Number.isInteger(blocks) || blocks < 1 || blocks > 256) return false
        if ('took' in event && (blocks > before + 1 || (blocks > 1 && blocks * event.took > WINDOW))) return false
      }
      return true
    })
  )
})

test('one block is asked for first, 16 once their sizes are signed, and 256 when many small ones have come', (t) => {
  const window = new BlockWindow()
  t.is(window.blocks, 1)
  window.signed(1000, 200_000)
  t.is(window.blocks, 16)
  for (let block = 0; block < 600; block++) window.took(200)
  t.is(window.blocks, 256)
  window.took(1_048_576)
  t.is(window.blocks, 1)
  window.signed(1_000_000, 52_428_800)
  t.is(window.blocks, 1, 'a writer cannot sign its large blocks away')
})
