import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  activeMembers,
  buildView,
  EMPTY_VIEW,
  firstView,
  inviteState,
  isActive,
  isAdmin,
  isWriter
} from '../../../src/domain/membership/view.js'
import type { InviteRecord } from '../../../src/domain/membership/types.js'
import { actor, cardBody, founded, inviteTerms, MESH } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')

test('an empty log is the empty view', (t: Assert) => {
  t.alike(buildView([]), EMPTY_VIEW)
})

test('the view shows members, cards, invites and writers of the records', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(ann, bob)
  log.card(bob, cardBody('host'))
  log.card(bob, cardBody('text'))
  log.uncard(bob, 'text', 1)
  const view = log.view()
  t.is(view.mesh?.name, 'home')
  t.alike(activeMembers(view), [owner.id, ann.id, bob.id], 'in the order of admission')
  t.alike([...(view.cards.get(bob.id)?.keys() ?? [])], ['host'], 'tombstones are no cards')
  t.is(view.invites.size, 2)
  t.alike(view.writers.active, [owner.coreKey, ann.coreKey])
})

test('the view says for each node whether it is an active member, an admin and a writer', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(ann, bob)
  const seen = (id: string) => [isActive, isAdmin, isWriter].map((is) => is(log.view(), id))
  t.alike(seen(owner.id), [true, true, true])
  t.alike(seen(ann.id), [true, true, true])
  t.alike(seen(bob.id), [true, false, false])
  t.alike(seen(actor('eve').id), [false, false, false])
  log.revoke(owner, ann)
  t.alike(seen(ann.id), [false, false, false])
  t.alike(activeMembers(log.view()), [owner.id, bob.id])
})

test('an invite is open, used, expired or revoked', (t: Assert) => {
  const record: InviteRecord = {
    terms: inviteTerms('a', { uses: 2, expiresAt: 100 }),
    by: owner.id,
    admitted: [],
    revokedAt: null
  }
  t.is(inviteState(record, 100), 'open')
  t.is(inviteState(record, 101), 'expired')
  t.is(inviteState({ ...record, admitted: [ann.id] }, 50), 'open')
  t.is(inviteState({ ...record, admitted: [ann.id, bob.id] }, 101), 'used')
  t.is(inviteState({ ...record, admitted: [ann.id, bob.id], revokedAt: 7 }, 101), 'revoked')
})

test('the invites of a revoked admin show as revoked', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const terms = inviteTerms('kept')
  log.invite(ann, terms)
  log.revoke(owner, ann, 4321)
  t.is(log.view().invites.get(terms.id)?.revokedAt, 4321)
})

test('the first view of a newcomer knows the root of its mesh and nobody', (t: Assert) => {
  const view = firstView({ mesh: MESH, name: 'home', owner: owner.id })
  t.is(view.mesh?.owner, owner.id)
  t.is(view.members.size, 0)
})

test('records that nobody here makes are skipped', (t: Assert) => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string(), fc.anything())),
      (records) => buildView(records.filter(([key]) => key !== 'mesh' && key !== 'writers')).members.size === 0
    ),
    { numRuns: 200 }
  )
  t.alike(
    buildView([
      ['mesh', 5],
      ['writers', null],
      [`member/${ann.id}`, 'x'],
      ['order', 3]
    ]),
    EMPTY_VIEW
  )
})
