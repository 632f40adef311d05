import test from 'brittle'
import { MAX_INVITES_OF_MEMBER, mayInviteMore } from '../../../../src/domain/membership/invites/invite-share.js'
import { actor, founded, inviteTerms, MESH } from '../../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')

test('invites of a member have a share of the log, by number; the owner and other admins can still invite', (t) => {
  const log = founded()
  for (const admin of [ann, bob]) log.join(owner, admin, { admin: true })
  for (let at = 0; at < MAX_INVITES_OF_MEMBER; at++) t.is(log.invite(ann, inviteTerms(`${at}`)).skipped, null)
  const more = inviteTerms('more')
  t.absent(mayInviteMore(log.view(), ann.id, more))
  t.is(log.invite(ann, more).skipped, 'invites of the node fill its share of the log')
  log.write(ann, { kind: 'invite-revoked', mesh: MESH, inviteId: inviteTerms('1').id, at: 2000 })
  t.ok(log.invite(ann, more).skipped, 'an invite that ended stays in the view')
  for (const by of [bob, owner]) t.ok(mayInviteMore(log.view(), by.id, more))
  t.is(log.invite(bob, more).skipped, null)
  t.is(log.invite(owner, inviteTerms('last')).skipped, null)
})

test('invites of a member have a share of the log, by bytes and by the places that they hold', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const many = (name: string): ReturnType<typeof inviteTerms> => inviteTerms(name, { uses: 1000 })
  let count = 0
  while (mayInviteMore(log.view(), ann.id, many(`${count}`))) t.is(log.invite(ann, many(`${count++}`)).skipped, null)
  t.ok(count > 10 && count < 17, `${count} invites of 1,000 uses`)
  t.ok(log.invite(ann, many('more')).skipped)
  t.is(log.invite(ann, inviteTerms('one')).skipped, null, 'a small one fits')
  t.is(log.invite(owner, many('of the owner')).skipped, null)
})
