import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  answeredInvites,
  ENDED_ANSWER_MS,
  hasRendezvousLeft,
  MAX_RENDEZVOUS
} from '../../../../src/domain/membership/invites/rendezvous.js'
import type { InviteRecord } from '../../../../src/domain/membership/types.js'
import { inviteTerms } from '../../../support/membership.js'

const NOW = 10 * ENDED_ANSWER_MS
const SELF = 'self' as never
const OTHER = 'other' as never

interface Draft {
  readonly by: never
  readonly createdAt: number
  readonly ttlMs: number
  readonly admitted: number
  readonly revokedAt: number | null
}

function viewOf(drafts: readonly Draft[]): { readonly invites: ReadonlyMap<string, InviteRecord> } {
  const records = drafts.map(({ by, createdAt, ttlMs, admitted, revokedAt }, index): [string, InviteRecord] => {
    const terms = { ...TERMS, id: String(index), createdAt, expiresAt: createdAt + ttlMs }
    const members = Array.from({ length: admitted }, () => OTHER)
    return [terms.id, { terms, by, admitted: members, revokedAt }]
  })
  return { invites: new Map(records) }
}

const TERMS = inviteTerms('any')
const OPEN: Draft = { by: SELF, createdAt: NOW - 1000, ttlMs: 600_000, admitted: 0, revokedAt: null }
const arbDraft = fc.record<Draft>({
  by: fc.constantFrom(SELF, OTHER),
  createdAt: fc.integer({ min: NOW - 2 * ENDED_ANSWER_MS, max: NOW }),
  ttlMs: fc.integer({ min: 1, max: 2 * ENDED_ANSWER_MS }),
  admitted: fc.integer({ min: 0, max: 1 }),
  revokedAt: fc.option(fc.integer({ min: NOW - 2 * ENDED_ANSWER_MS, max: NOW }))
})

test('each own open invite is answered while no more are made than are allowed, however many others make', (t: Assert) => {
  let most = 0
  fc.assert(
    fc.property(fc.array(arbDraft, { maxLength: 150, size: 'max' }), (drafts) => {
      const made: Draft[] = []
      for (const draft of drafts)
        if (draft.by === OTHER || hasRendezvousLeft(viewOf(made), { self: SELF, now: NOW })) made.push(draft)
      const answered = new Set(answeredInvites(viewOf(made), { self: SELF, now: NOW }))
      most = Math.max(most, answered.size)
      const isOpen = (one: Draft): boolean =>
        one.revokedAt === null && one.admitted === 0 && NOW <= one.createdAt + one.ttlMs
      return (
        answered.size <= MAX_RENDEZVOUS &&
        made.every((one, index) => one.by !== SELF || !isOpen(one) || answered.has(String(index)))
      )
    }),
    { numRuns: 50 }
  )
  t.is(most, MAX_RENDEZVOUS)
})

test('an ended invite is answered for a day, so that its newcomer learns the reason', (t: Assert) => {
  const answered = (change: Partial<Draft>): boolean =>
    answeredInvites(viewOf([{ ...OPEN, ...change }]), { self: SELF, now: NOW }).length === 1
  t.ok(answered({ admitted: 1 }), 'used')
  t.ok(answered({ revokedAt: NOW - ENDED_ANSWER_MS + 1 }), 'revoked within the day')
  t.absent(answered({ revokedAt: NOW - ENDED_ANSWER_MS }), 'revoked before')
  t.ok(answered({ createdAt: NOW - ENDED_ANSWER_MS, ttlMs: 1 }), 'expired within the day')
  t.absent(answered({ createdAt: NOW - ENDED_ANSWER_MS, ttlMs: 0 }), 'expired before')
})

test('of ended and foreign invites the newest are answered', (t: Assert) => {
  const drafts = Array.from({ length: 70 }, (_, index) => ({ ...OPEN, by: OTHER, createdAt: NOW - 70 + index }))
  const answered = answeredInvites(viewOf([{ ...OPEN, createdAt: NOW - 500 }, ...drafts]), { self: SELF, now: NOW })
  t.alike(answered, ['0', ...Array.from({ length: 63 }, (_, index) => String(70 - index))])
})
