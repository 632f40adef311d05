import test from 'brittle'
import { leftReason, shareOf } from '../../../src/node/documents/left-documents.js'
import type { LeftStream } from '../../../src/node/documents/replication-set.js'
import type { DocumentRecord } from '../../../src/domain/membership/types.js'

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
