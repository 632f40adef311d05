import test from 'brittle'
import type { DocumentRecord, MembershipView } from '../../../src/domain/membership/types.js'
import { Forks } from '../../../src/node/documents/forks.js'
import { FakeAudit } from '../../support/fake-node.js'
import { FakeLog } from '../../support/fake-log.js'
import { actor, founded } from '../../support/membership.js'

const owner = actor('owner')
const writer = actor('writer')

function documentOf(streams: DocumentRecord['streams']): DocumentRecord {
  return { name: 'plan', creator: owner.id, createdAt: 0, access: null, streams }
}

/** Forks at the owner, of a log whose documents a test may change. */
function scene(streams: DocumentRecord['streams']): {
  readonly forks: Forks
  readonly audit: FakeAudit
  set(next: DocumentRecord['streams']): void
} {
  const model = founded()
  model.join(owner, writer, { tier: 1 })
  let documents = [documentOf(streams)]
  const log = new FakeLog(model).of(owner)
  const view = (): MembershipView => ({ ...model.view(), documents: new Map(documents.map((one) => [one.name, one])) })
  const audit = new FakeAudit()
  return {
    forks: new Forks({ audit, log: { ...log, view }, self: owner.id }),
    audit,
    set: (next) => {
      documents = [documentOf(next)]
    }
  }
}

test('a fork is on record once, with its member, and a problem until the member has another stream', (t) => {
  const { forks, audit, set } = scene([{ nodeKey: writer.id, coreKey: 'first' }])
  t.alike([forks.has('first'), forks.problems()], [false, []])
  forks.add('first')
  forks.add('first')
  t.ok(forks.has('first'))
  t.alike(
    audit.all.map(({ kind, code, peer, ref }) => ({ kind, code, peer, ref })),
    [{ kind: 'strike', code: 'CONFLICT', peer: writer.id, ref: 'document-fork/first' }]
  )
  t.alike(
    forks.problems().map(({ code, next }) => [code, next]),
    [['CONFLICT', `a2a-node peers revoke ${writer.id}`]]
  )
  set([
    { nodeKey: writer.id, coreKey: 'first' },
    { nodeKey: writer.id, coreKey: 'second' }
  ])
  t.alike(forks.problems(), [])
})

test('the owner of the mesh is told to look at its home, not to revoke itself', (t) => {
  const { forks } = scene([{ nodeKey: owner.id, coreKey: 'own' }])
  forks.add('own')
  const [problem] = forks.problems()
  t.ok(problem?.next?.startsWith('a2a-node doctor'))
})

test('a stream that no document names is forked, and nobody is blamed for it', (t) => {
  const { forks, audit } = scene([])
  forks.add('unknown')
  t.alike([forks.has('unknown'), forks.problems(), audit.all], [true, [], []])
})
