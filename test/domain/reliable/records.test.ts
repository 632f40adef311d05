import test from 'brittle'
import fc from 'fast-check'
import { KEYS, rangeOf, readMessageKey } from '../../../src/domain/reliable/keys.js'
import { messageRecord, receiverRecord, senderRecord } from '../../../src/domain/reliable/records.js'
import type { RecordCodec } from '../../../src/domain/reliable/records.js'
import { NodeError } from '../../../src/kit/errors.js'
import { arbAddress } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'

const number = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const id = fc.string({ maxLength: 40, unit: 'grapheme' })

const CASES: readonly (readonly [string, RecordCodec<never>, fc.Arbitrary<unknown>])[] = [
  ['a sending end', senderRecord as RecordCodec<never>, fc.record({ next: number })],
  ['a receiving end', receiverRecord as RecordCodec<never>, fc.record({ contig: number, lastId: fc.option(id) })],
  [
    'a message',
    messageRecord as RecordCodec<never>,
    fc.record({ messageId: id, requestId: fc.option(id), bytes: number, expiresAt: number, isVoid: fc.boolean() })
  ]
]

for (const [name, codec, values] of CASES) {
  test(`${name} comes back as it was written; cut short or longer it is damaged`, async (t) => {
    const property = fc.property(values, fc.nat(), (value, cut) => {
      const bytes = codec.encode(value as never)
      if (JSON.stringify(codec.decode(bytes)) !== JSON.stringify(value)) return false
      return (
        isDamaged(codec, bytes.subarray(0, cut % bytes.byteLength)) && isDamaged(codec, new Uint8Array([...bytes, 0]))
      )
    })
    await holds(t, property)
  })
}

test('keys of messages are in the order of their numbers, within their lane, and are read back', async (t) => {
  const lanes = fc.tuple(arbAddress(), arbAddress()).map(([source, target]) => `${source}>${target}`)
  const property = fc.property(lanes, number, number, (lane, a, b) => {
    const [first, second] = [KEYS.message(lane, a), KEYS.message(lane, b)]
    const { from, to } = rangeOf('out')
    const read = readMessageKey(first)
    return first < second === a < b && from <= first && first < to && read.lane === lane && read.seq === a
  })
  await holds(t, property)
})

function isDamaged(codec: RecordCodec<never>, bytes: Uint8Array): boolean {
  try {
    codec.decode(bytes)
    return false
  } catch (error) {
    return error instanceof NodeError && error.code === 'STORE_DAMAGED'
  }
}

test('a record of another version of this program is distinguished from a damaged one', (t) => {
  const bytes = senderRecord.encode({ next: 7 })
  const codeOf = (changed: Uint8Array): string => {
    try {
      senderRecord.decode(changed)
    } catch (error) {
      return error instanceof NodeError ? error.code : 'another error'
    }
    return 'none'
  }
  t.is(codeOf(bytes), 'none')
  t.is(codeOf(new Uint8Array([2, ...bytes.subarray(1)])), 'SCHEMA_VERSION_MISMATCH')
  t.is(codeOf(bytes.subarray(0, 1)), 'STORE_DAMAGED')
  t.is(codeOf(new Uint8Array(0)), 'STORE_DAMAGED')
})
