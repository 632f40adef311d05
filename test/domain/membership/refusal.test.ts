import test, { type Assert } from 'brittle'
import { mayPutOut, type OwnStanding } from '../../../src/domain/membership/refusal.js'
import { actor, founded } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')
const eve = actor('eve')
const FRESH_MS = 600_000

/** Ann is an admin and admitted bob; eve is a member whom the owner admitted. */
function scene() {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(ann, bob)
  log.join(owner, eve)
  const standing = (nodeId: string, age = 0): OwnStanding => {
    const view = log.view()
    const own = view.members.get(nodeId)?.certificate.body ?? null
    return { view, owner: owner.id, own, now: (own?.issuedAt ?? 0) + age }
  }
  return { log, standing }
}

test('a revocation is believed of the owner and of an admin that could revoke, of no other member', (t: Assert) => {
  const { standing } = scene()
  const of = (peer: string, member: string): boolean => mayPutOut({ peer, code: 'REVOKED' }, standing(member))
  t.ok(of(owner.id, bob.id))
  t.ok(of(ann.id, bob.id))
  t.absent(of(eve.id, bob.id))
  t.absent(of(bob.id, eve.id))
  t.ok(of(owner.id, ann.id))
  t.absent(of(bob.id, ann.id))
  t.absent(of(actor('nobody').id, bob.id))
})

test('a revoked member puts nobody out, not even a member that it admitted', (t: Assert) => {
  const { log, standing } = scene()
  log.revoke(owner, ann)
  t.absent(mayPutOut({ peer: ann.id, code: 'REVOKED' }, standing(bob.id)))
  t.absent(mayPutOut({ peer: ann.id, code: 'INVITE_USED' }, standing(bob.id)))
})

test('a lost invite is believed for ten minutes, and only of the owner, the issuer and admins that may revoke', (t: Assert) => {
  const { standing } = scene()
  const of = (peer: string, age: number): boolean => mayPutOut({ peer, code: 'INVITE_USED' }, standing(bob.id, age))
  for (const peer of [owner.id, ann.id]) {
    t.ok(of(peer, FRESH_MS - 1))
    t.absent(of(peer, FRESH_MS))
  }
  t.absent(of(eve.id, 0))
})

test('before the own certificate has come a lost invite is believed of everybody, a revocation of the owner alone', (t: Assert) => {
  const { standing } = scene()
  const newcomer = { ...standing(actor('newcomer').id), own: null }
  t.ok(mayPutOut({ peer: eve.id, code: 'INVITE_USED' }, newcomer))
  t.absent(mayPutOut({ peer: eve.id, code: 'REVOKED' }, newcomer))
  t.ok(mayPutOut({ peer: owner.id, code: 'REVOKED' }, newcomer))
})

test('no other code puts a member out, for any sender', (t: Assert) => {
  const { standing } = scene()
  for (const code of ['FORBIDDEN', 'OVERLOADED', 'CONFLICT', 'INTERNAL'] as const)
    for (const peer of [owner.id, ann.id, eve.id])
      t.absent(mayPutOut({ peer, code }, standing(bob.id)), `${code} of a peer`)
})
