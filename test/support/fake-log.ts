import { documentCoreKey } from '../../src/domain/membership/keys.js'
import { NodeError } from '../../src/kit/errors.js'
import { seal } from '../../src/domain/membership/signing.js'
import type { EntryBody, MembershipView, SignedCertificate } from '../../src/domain/membership/types.js'
import type { NodeDeps } from '../../src/node/dependencies.js'
import type { MemberLog } from '../../src/ports/mesh.js'
import { type Actor, actor, type LogModel, MESH } from './membership.js'

/** One log for all nodes of a test: what one writes, all read in the same turn. */
export class FakeLog {
  readonly #listeners = new Set<(view: MembershipView) => void>()
  /** False: the owner signs nothing. */
  isSigned = true
  /** Entries that nodes submitted. */
  readonly submitted: EntryBody[] = []
  /** How long each submission waits: milliseconds, undefined for the log's own time. */
  readonly waits: (number | undefined)[] = []
  /** False: no writer takes anything. */
  isWritable = true
  #view: MembershipView

  constructor(readonly model: LogModel) {
    this.#view = model.view()
  }

  /** The log as one node has it. */
  of(node: Actor): MemberLog {
    return {
      view: () => this.#view,
      onChange: (listener) => {
        this.#listeners.add(listener)
        return () => this.#listeners.delete(listener)
      },
      submit: (body, timeoutMs) => {
        this.waits.push(timeoutMs)
        return this.#submit(node, body)
      },
      isCoreSigned: (coreKey) => Promise.resolve(this.isSigned && this.model.records.has(documentCoreKey(coreKey))),
      writable: () => this.isWritable,
      length: () => this.model.entries.length
    }
  }

  /** The view of everybody. */
  view(): MembershipView {
    return this.#view
  }

  /** The model was changed by hand: everybody reads it anew. */
  changed(): void {
    this.#view = this.model.view()
    for (const listener of [...this.#listeners]) listener(this.#view)
  }

  async #submit(node: Actor, body: EntryBody): Promise<void> {
    await Promise.resolve()
    if (!this.isWritable) throw new NodeError('TIMEOUT', 'no writer took the entry')
    const { skipped, isFull } = this.model.apply(seal('entry', body, node))
    if (isFull) throw new NodeError('OVERLOADED', `the mesh log takes no more: ${skipped ?? ''}`, { retryable: false })
    this.submitted.push(body)
    this.changed()
  }
}

/** A member as its node knows itself. */
export function membershipOf(log: FakeLog, node: Actor): NodeDeps['membership'] {
  return {
    nodeId: node.id,
    meshId: MESH,
    meshName: 'home',
    owner: actor('owner').id,
    acceptsInviter: false,
    problemOf: () => null,
    certificate: (): SignedCertificate => {
      const member = log.view().members.get(node.id)
      if (member === undefined) throw new Error(`${node.name} is no member`)
      return member.certificate
    }
  }
}
