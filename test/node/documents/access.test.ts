import test from 'brittle'
import type { DocumentRecord, MembershipView } from '../../../src/domain/membership/types.js'
import { callerAccess, countedStreams, knownLengths, memberAccess } from '../../../src/node/documents/access.js'
import { ACCESS, actor, founded } from '../../support/membership.js'

const owner = actor('owner')
const [strong, weak, boxed] = [actor('strong'), actor('weak'), actor('boxed')]

function view(): MembershipView {
  const model = founded()
  model.join(owner, strong, { tier: 1 })
  model.join(owner, weak, { tier: 3 })
  model.join(owner, boxed, { tier: 1, sandboxId: 'lab' })
  return model.view()
}

function documentOf(change: Partial<DocumentRecord> = {}): DocumentRecord {
  return { name: 'plan', creator: owner.id, createdAt: 0, access: null, streams: [], ...change }
}

/** Only L0 and L1 may write it, everybody outside of sandboxes may see it. */
const GUARDED = documentOf({ access: { access: ACCESS, by: owner.id, at: 0, signature: '', lengths: {} } as never })

test('a member has the rights that the list gives its certificate; who is no member or was revoked has none', (t) => {
  const rights = (node: { readonly id: string }): readonly boolean[] => {
    const { maySee, mayWrite } = memberAccess(view(), GUARDED, node.id)
    return [maySee, mayWrite]
  }
  t.alike(
    [rights(strong), rights(weak), rights(boxed), rights(actor('stranger'))],
    [
      [true, true],
      [true, false],
      [false, false],
      [false, false]
    ]
  )
  const model = founded()
  model.join(owner, strong, { tier: 1 })
  model.revoke(owner, strong)
  t.absent(memberAccess(model.view(), GUARDED, strong.id).maySee)
})

test('a caller that is weaker than its node has the rights of the weaker, and restricts nothing', (t) => {
  const of = (maxTier: 0 | 1 | 2 | 3, sandboxId: string | null = null): readonly boolean[] => {
    const { maySee, mayWrite, mayRestrict } = callerAccess(view(), GUARDED, {
      self: owner.id,
      by: { maxTier, sandboxId }
    })
    return [maySee, mayWrite, mayRestrict]
  }
  t.alike(
    [of(0), of(1), of(3), of(0, 'lab')],
    [
      [true, true, true],
      [true, true, false],
      [true, false, false],
      [false, false, false]
    ]
  )
})

test('the streams of a document count as far as the view says, with their known lengths', async (t) => {
  const record = documentOf({ streams: [{ nodeKey: strong.id, coreKey: 'one' }] })
  t.alike([...countedStreams(view(), record)], [['one', Number.POSITIVE_INFINITY]])
  t.alike(await knownLengths({ length: (core) => Promise.resolve(core === 'one' ? 7 : 0) }, record), { one: 7 })
})
