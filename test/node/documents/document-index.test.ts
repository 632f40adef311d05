import test from 'brittle'
import type { DocumentRecord, MembershipView } from '../../../src/domain/membership/types.js'
import { DocumentIndex } from '../../../src/node/documents/document-index.js'
import { failsWith } from '../../support/fails.js'
import { ACCESS, actor, founded, hash } from '../../support/membership.js'

const owner = actor('owner')
const OPERATOR = { maxTier: 0, sandboxId: null } as const
const BOXED = { maxTier: 0, sandboxId: 'lab' } as const

function indexOf(...names: readonly string[]): DocumentIndex {
  const guarded = { access: ACCESS, by: owner.id, at: 0, signature: '', lengths: {} } as never
  const documents = names.map(
    (name): DocumentRecord => ({ name, creator: owner.id, createdAt: 0, access: guarded, streams: [] })
  )
  const view: MembershipView = { ...founded().view(), documents: new Map(documents.map((one) => [one.name, one])) }
  return new DocumentIndex({ hash, log: { view: () => view }, self: owner.id })
}

test('documents are listed by name, and found by name or id', (t) => {
  const index = indexOf('plan', 'goals')
  const [goals, plan] = index.list(OPERATOR)
  t.alike([goals?.record.name, plan?.record.name], ['goals', 'plan'])
  t.is(index.find('plan', OPERATOR).id, plan?.id)
  t.is(index.find(plan?.id ?? '', OPERATOR).record.name, 'plan')
  t.not(plan?.id, goals?.id)
  t.is(indexOf('plan').idOf('plan'), plan?.id, 'the id follows from mesh and name alone')
})

test('a document that a caller may not see is neither listed nor found', async (t) => {
  const index = indexOf('plan')
  t.alike(index.list(BOXED), [])
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => index.find('plan', BOXED))
  await failsWith(t, 'DOCUMENT_NOT_FOUND', () => index.find('other', OPERATOR))
})

test('a name is warned of when it looks like the name of another document that the caller sees', (t) => {
  const index = indexOf('plan', '\u0440lan')
  t.ok(index.nameWarnings(OPERATOR)('plan')?.startsWith('it looks like the name of the document'))
  t.is(index.nameWarnings(BOXED)('plan'), null, 'the other one is hidden')
  t.is(indexOf('plan').nameWarnings(OPERATOR)('plan'), null)
})
