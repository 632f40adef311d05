import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  cardIndexKey,
  cardKey,
  documentKey,
  inviteIndexKey,
  inviteKey,
  memberKey,
  MESH_KEY,
  ORDER_KEY,
  parseRecordKey,
  refusalKey,
  trustKey,
  REVOKED_KEY,
  WRITERS_KEY
} from '../../../src/domain/membership/keys.js'
import { actor, keyText } from '../../support/membership.js'

const nodeId = actor('ann').id

test('every key is taken apart as it was built', (t: Assert) => {
  for (const kind of [MESH_KEY, WRITERS_KEY, ORDER_KEY, REVOKED_KEY]) t.alike(parseRecordKey(kind), { kind })
  t.alike(parseRecordKey(memberKey(nodeId)), { kind: 'member', nodeId })
  t.alike(parseRecordKey(refusalKey(nodeId)), { kind: 'refusal', nodeId })
  t.alike(parseRecordKey(cardIndexKey(nodeId)), { kind: 'cards', nodeId })
  t.alike(parseRecordKey(inviteIndexKey(nodeId)), { kind: 'invites', nodeId })
  t.alike(parseRecordKey(trustKey(nodeId)), { kind: 'trust', nodeId })
  t.alike(parseRecordKey(inviteKey(keyText('i'))), { kind: 'invite', inviteId: keyText('i') })
  for (const name of ['notes', 'a/b', 'plan \u00e9 \u{1f600}'])
    t.alike(parseRecordKey(documentKey(name)), { kind: 'document', name })
  t.alike(parseRecordKey(cardKey(nodeId, 'a.b_c-d')), { kind: 'card', nodeId, agentId: 'a.b_c-d' })
})

test('other keys are none', (t: Assert) => {
  for (const key of [
    '',
    'member',
    'member/',
    'member/ann',
    `member/${nodeId}/x`,
    `card/${nodeId}`,
    `card/${nodeId}/`,
    `card/${nodeId}/a/b`,
    `other/${nodeId}`,
    'meshes',
    'document/',
    'document/!',
    `${documentKey('a')}/b`
  ]) {
    t.is(parseRecordKey(key), null, key)
  }
  fc.assert(
    fc.property(
      fc.string(),
      (key) => parseRecordKey(key) === null || ['mesh', 'writers', 'order', 'revoked'].includes(key)
    ),
    { numRuns: 200 }
  )
})
