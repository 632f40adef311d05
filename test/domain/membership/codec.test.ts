import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { utf8 } from '../../../src/kit/ids.js'
import {
  decodeEntry,
  decodeJoinData,
  decodeMeshInfo,
  encodeEntry,
  encodeJoinData,
  encodeMeshInfo,
  ENTRY_MAX_BYTES,
  JOIN_DATA_MAX_BYTES
} from '../../../src/domain/membership/codec.js'
import { MESH_INFO_MAX_BYTES } from '../../../src/domain/membership/schema.js'
import { actor, cardBody, founded, joinRequest, keyText, MESH } from '../../support/membership.js'
import { arbAgentCard } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'

const owner = actor('owner')
const ann = actor('ann')
const arbName = fc
  .string({ minLength: 1, maxLength: 64, unit: fc.constantFrom(...'abcXYZ 0189-é机') })
  .filter((text) => text.trim() !== '')

test('every entry comes back from its bytes as it was', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbAgentCard(), arbName, (card, name) => {
      const log = founded()
      log.join(owner, { ...ann, name })
      const { origin: _, lastSeenAt: __, provider: ___, ...body } = card
      log.card(owner, body)
      for (const { entry } of log.entries) {
        const decoded = decodeEntry(encodeEntry(entry))
        if (!decoded.ok) throw new Error(decoded.reason)
        if (encodeEntry(decoded.entry).toString() !== encodeEntry(entry).toString()) throw new Error('not the same')
      }
    }),
    100
  )
})

test('requests and mesh descriptions come back as they were, within their bounds', (t: Assert) => {
  fc.assert(
    fc.property(arbName, (name) => {
      const request = joinRequest({ ...ann, name }, keyText('i'))
      const join = decodeJoinData(encodeJoinData({ v: 1, request }))
      const info = { v: 1 as const, owner: owner.id, name, mesh: MESH }
      const mesh = decodeMeshInfo(encodeMeshInfo(info))
      return (
        join.ok &&
        mesh.ok &&
        JSON.stringify(join.request) === JSON.stringify(request) &&
        JSON.stringify(mesh.info) === JSON.stringify(info)
      )
    }),
    { numRuns: 100 }
  )
  const longest = { ...ann, name: '机'.repeat(64) }
  t.ok(decodeJoinData(encodeJoinData({ v: 1, request: joinRequest(longest, keyText('i')) })).ok)
  t.ok(decodeMeshInfo(encodeMeshInfo({ v: 1, owner: owner.id, name: longest.name, mesh: MESH })).ok)
})

test('arbitrary bytes are refused with a reason, never thrown at', (t: Assert) => {
  const arbBytes = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.json().map(utf8),
    fc.constantFrom('{"__proto__":1}', '{"body":{"kind":"card"}}', '['.repeat(5000), '"', '{"v":1}', '').map(utf8)
  )
  fc.assert(
    fc.property(arbBytes, (bytes) =>
      [decodeEntry, decodeJoinData, decodeMeshInfo].every((decode) => refusal(decode(bytes)) !== '')
    ),
    { numRuns: 1000 }
  )
  for (const junk of [null, undefined, 'text', 5, {}]) t.absent(decodeEntry(junk as never).ok)
})

function refusal(result: { ok: boolean; reason?: string }): string {
  if (result.ok) throw new Error('accepted')
  return result.reason ?? ''
}

test('an entry larger than its bound is not even parsed', (t: Assert) => {
  t.is(refusal(decodeEntry(new Uint8Array(ENTRY_MAX_BYTES + 1))), `larger than ${ENTRY_MAX_BYTES} bytes`)
  t.is(refusal(decodeJoinData(new Uint8Array(JOIN_DATA_MAX_BYTES + 1))), `larger than ${JOIN_DATA_MAX_BYTES} bytes`)
  t.is(refusal(decodeMeshInfo(new Uint8Array(MESH_INFO_MAX_BYTES + 1))), `larger than ${MESH_INFO_MAX_BYTES} bytes`)
})

test('the reason names the place and is safe to show', (t: Assert) => {
  const log = founded()
  log.card(owner, cardBody('host'))
  const entry = log.entries.at(-1)?.entry
  t.is(
    refusal(decodeEntry(utf8(JSON.stringify({ ...entry, body: { kind: 'card', mesh: MESH, card: 5 } })))).split(':')[0],
    'body.card'
  )
  t.is(refusal(decodeEntry(utf8('{'))), 'not JSON')
  const reason = refusal(decodeEntry(utf8(JSON.stringify({ ...entry, '\u001b[31mred': 1 }))))
  t.absent(reason.includes('\u001b'))
})
