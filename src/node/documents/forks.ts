import { DOCUMENT_NAME, NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { shown } from '../../kit/text.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { StreamStop } from '../../domain/document/stream.js'
import type { DocumentRecord } from '../../domain/membership/types.js'
import type { Audit } from '../../ports/audit.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Problem } from '../../ports/node-api.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { type NodeId, shortId } from '../../kit/ids.js'
import type { NodeEvents } from '../observe/events.js'

/** Why no block of a forked stream counts. */
export const FORKED = 'its member signed two different blocks at one place'

/** Dependencies of {@link Forks}. */
export interface ForksDeps {
  readonly audit: Audit
  readonly events: NodeEvents
  readonly log: Pick<MemberLog, 'view'>
  readonly telemetry: Telemetry
  readonly self: NodeId
}

interface Fork {
  readonly stream: StreamKey
  readonly document: DocumentRecord
  readonly member: NodeId
}

/**
 * Reports faults in streams of documents: skipped blocks once, and two branches that one member signed until that
 * member goes on with another stream.
 */
export class Forks {
  readonly #deps: ForksDeps
  readonly #streams = new Set<StreamKey>()

  constructor(deps: ForksDeps) {
    this.#deps = deps
  }

  /** Records a stream as forked. */
  add(stream: StreamKey): void {
    if (this.#streams.has(stream)) return
    this.#streams.add(stream)
    for (const { document, member, stream: found } of this.#found()) {
      if (found !== stream) continue
      const reason = `it signed two different blocks of the document ${safeName(document.name, DOCUMENT_NAME)} at one place`
      // Recorded again after each start of this node.
      this.#deps.audit.append({
        kind: 'strike',
        code: 'CONFLICT',
        rule: 'quarantine',
        reason,
        peer: member,
        ref: `document-fork/${stream}`
      })
    }
  }

  /** True when a stream is forked. */
  has(stream: StreamKey): boolean {
    return this.#streams.has(stream)
  }

  /** Reports that later blocks of a stream are skipped, with its member and the reason. */
  reportStop(name: string, { stream, at, reason }: StreamStop): void {
    const { events, log, telemetry } = this.#deps
    const streams = log.view().documents.get(name)?.streams ?? []
    const source = streams.find(({ coreKey }) => coreKey === stream)?.nodeKey ?? null
    const what = { code: 'CRDT_DESERIALIZATION_FAILED', source, document: shown(name), at }
    telemetry.log('warn', 'updates of a document are skipped', { ...what, reason })
    events.add('document', `updates of a document are skipped: ${reason}`, { ...what, stream })
  }

  /** The problems for `status`: one for each member of a document with forked streams and no other stream. */
  problems(): Problem[] {
    const problems = new Map<string, Problem>()
    for (const { document, member } of this.#found()) {
      const isOver = document.streams.some(({ nodeKey, coreKey }) => nodeKey === member && !this.#streams.has(coreKey))
      if (!isOver) problems.set(`${member} ${document.name}`, this.#problem(document, member))
    }
    return [...problems.values()]
  }

  #problem(document: DocumentRecord, member: NodeId): Problem {
    const { members, mesh } = this.#deps.log.view()
    const name = `${safeName(members.get(member)?.certificate.body.name ?? 'a node', NODE_NAME)} (${shortId(member)})`
    const message = `${name} signed two different blocks of the document ${shown(document.name)} at one place: nothing of that stream is taken`
    const look = `a2a-node doctor   # on ${name}, if its home was put back or copied`
    const isTrusted = member === mesh?.owner || member === this.#deps.self
    return { code: 'CONFLICT', message, next: isTrusted ? look : `a2a-node peers revoke ${member}` }
  }

  #found(): Fork[] {
    const { members, documents } = this.#deps.log.view()
    return [...documents.values()].flatMap((document) =>
      document.streams
        .filter(({ nodeKey, coreKey }) => this.#streams.has(coreKey) && members.get(nodeKey)?.revoked === null)
        .map(({ nodeKey, coreKey }) => ({ stream: coreKey, document, member: nodeKey }))
    )
  }
}
