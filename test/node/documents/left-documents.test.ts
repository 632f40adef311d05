import test from 'brittle'
import { DocumentUses, leftReason, shareOf } from '../../../src/node/documents/left-documents.js'
import type { LeftStream } from '../../../src/node/documents/replication-set.js'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'

test('a document is in use from the moment somebody wants it until each use is released once', async (t) => {
  let open: (value: string) => void = () => {}
  const letGo: string[] = []
  const uses = new DocumentUses<string>({
    open: () => new Promise((resolve) => (open = resolve)),
    letGo: (name, opened) => letGo.push(`${name} ${opened}`)
  })
  const first = uses.hold('plan')
  t.ok(uses.has('plan'), 'before it is open')
  open('one')
  const { opened, release } = await first
  t.is(opened, 'one')
  const second = uses.hold('plan')
  open('two')
  const other = await second
  release()
  release()
  t.alike([uses.has('plan'), letGo], [true, ['plan one']], 'a second release of one use does nothing')
  other.release()
  t.alike([uses.has('plan'), letGo], [false, ['plan one', 'plan two']])
})

test('a document that cannot be opened is not in use', async (t) => {
  const uses = new DocumentUses<string>({ open: () => Promise.reject(new Error('damaged')), letGo: () => t.fail('it was never open') })
  await t.exception(uses.hold('plan'), /damaged/)
  t.absent(uses.has('plan'))
})

test('the share of a member counts its own left streams alone, and each reason has its words', (t) => {
  const left: LeftStream[] = [
    { stream: 'a', node: 'one', reason: 'bytes' },
    { stream: 'b', node: 'two', reason: 'places' },
    { stream: 'c', node: 'one', reason: 'revoked' }
  ]
  const record: DocumentRecord = { name: 'plan', creator: 'one', createdAt: 0, access: null, streams: [] }
  const share = shareOf(
    { followed: { leftOf: () => left }, shares: { bytesOf: ({ kind }) => (kind === 'stream' ? 7 : 3) } },
    { documents: new Map([['plan', record]]) },
    'one'
  )
  t.alike([share.bytes, share.snapshotBytes, share.leftOut], [7, 3, 2])
  t.is(new Set(left.map(leftReason)).size, 3)
})
