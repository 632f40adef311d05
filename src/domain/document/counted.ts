import { lengthOf, memberOf } from '../membership/fold/document.js'
import type { DocumentRecord, MembershipView } from '../membership/types.js'
import { accessOf } from './access.js'
import type { StreamKey } from './client-ids.js'

/**
 * Number of blocks of a stream that count, by the log alone, so it is the same on every node. It is infinite while the
 * member of the stream may write. Else it is the length that the signer of the current access list had, and at least
 * the length in the current snapshot. A removed member is judged by its last certificate: its blocks stay until a list
 * leaves them out.
 */
export function countedBlocks(view: MembershipView, document: DocumentRecord, stream: StreamKey): number {
  const { access, creator, streams, snapshot } = document
  const guarded = { owner: view.mesh?.owner ?? '', creator, access: access?.access ?? null }
  const mayWrite = streams.some(({ nodeKey, coreKey }) => {
    const member = coreKey === stream ? view.members.get(nodeKey) : undefined
    return member !== undefined && accessOf(guarded, memberOf(member.certificate.body)).mayWrite
  })
  if (mayWrite) return Number.POSITIVE_INFINITY
  return Math.max(lengthOf(access?.lengths ?? {}, stream), lengthOf(snapshot?.lengths ?? {}, stream))
}
