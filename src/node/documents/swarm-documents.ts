import { type Clock, wait } from '../../kit/clock.js'
import { asNodeError, messageOf, type NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { MAX_LISTED } from '../../domain/document/access.js'
import type { EntryBody, MembershipView } from '../../domain/membership/types.js'
import type { DocumentStreams } from '../../ports/documents.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { Abort } from '../../kit/abort.js'
import { parseAddress } from '../../domain/card/card.js'
import { knownLengths, memberAccess } from './access.js'
import type { PeerTable } from '../peers/peer-table.js'
import { surveyByNeed, type SurveyDeps } from '../swarms/eligibility.js'
import type { SwarmStore } from '../swarms/store.js'
import type { SwarmTable } from '../swarms/swarm-table.js'
import type { Executor } from '../requests/callee/executor.js'

/** Name of the stored list of documents with rules set by a caller. */
const STORED = 'swarm-documents'
/** Name of the stored list of documents that this node made for swarms. */
const STORED_MADE = 'swarm-documents-made'
/** How long a call waits for a document, in milliseconds. */
const PATIENCE_MS = 10_000

/** Dependencies of {@link SwarmDocuments}. */
export interface SwarmDocumentsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly log: MemberLog
  readonly store: NodeStore
  readonly self: NodeId
  readonly peers: Pick<PeerTable, 'isOnline' | 'send'>
  readonly streams: Pick<DocumentStreams, 'length'>
  readonly swarms: Pick<SwarmTable, 'inMemory'>
  readonly swarmStore: Pick<SwarmStore, 'heads'>
  readonly executor: Pick<Executor, 'leaderOf'>
  readonly eligible: Pick<EligibleAgents, 'nodesOf'>
}

/**
 * Each swarm has a document named by its id. Its participants see and write it, and nobody else but the owner of the
 * mesh. It is made when a participant first asks for it, so that other swarms leave nothing in the log.
 */
export class SwarmDocuments {
  readonly #deps: SwarmDocumentsDeps
  /** Documents that are being made. */
  readonly #making = new Map<string, Promise<NodeError | null>>()
  #handedOver: Promise<Set<string>> | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: SwarmDocumentsDeps) {
    this.#deps = deps
  }

  /**
   * Makes sure that the document of that name exists, if it belongs to a swarm in which this node takes part. Resolves,
   * too, when nothing made it in time. @throws NodeError OVERLOADED when a limit of the log is reached
   */
  async ensure(name: string): Promise<void> {
    const { log, peers, executor, self } = this.#deps
    const isThere = (): boolean => maySee(log.view(), name, self)
    if (isThere() || log.view().removedDocuments.has(name)) return
    const participants = this.#participants(name)
    if (participants !== null) {
      const fault = await this.#make(name, participants)
      if (fault?.code === 'OVERLOADED') throw fault
      return
    }
    const leader = executor.leaderOf(name)
    if (leader === null || !peers.isOnline(leader)) return
    peers.send(leader, { kind: 'control', name: 'swarm-document', body: { swarm: name } })
    await this.#until(isThere)
  }

  /**
   * A caller at this node sets the rules of a document. From then on new participants of its swarm no longer change
   * them.
   */
  async handOver(name: string): Promise<void> {
    if (this.#deps.swarms.inMemory(name) === undefined) return
    const names = await this.#theirs()
    if (names.has(name)) return
    names.add(name)
    await this.#deps.store.write(STORED, [...names])
  }

  /** Makes the document of a swarm for a peer, if that takes part. Never throws. */
  onAsked(peer: NodeId, { swarm }: ControlBody<'swarm-document'>): void {
    const participants = this.#participants(swarm)
    if (participants?.includes(peer) === true) void this.#make(swarm, participants)
  }

  /** The participants of a swarm that this node launched or joined; null for any other swarm. */
  #participants(id: string): NodeId[] | null {
    const { eligible, self, swarms } = this.#deps
    const head = swarms.inMemory(id)?.head
    return head === undefined ? null : [...new Set([self, ...(head.voters ?? []), ...eligible.nodesOf(head)])]
  }

  /** Resolves with the fault; null for none. Never rejects. */
  #make(name: string, participants: readonly NodeId[]): Promise<NodeError | null> {
    const making = this.#making.get(name) ?? this.#makeNow(name, participants).finally(() => this.#making.delete(name))
    this.#making.set(name, making)
    return making
  }

  async #makeNow(name: string, participants: readonly NodeId[]): Promise<NodeError | null> {
    const { log, telemetry } = this.#deps
    try {
      const entry = await this.#entry(name, participants)
      if (entry === null) return null
      // Before the entry: a document that is not noted would stay for good.
      if (entry.kind === 'document') await this.#note(name)
      await log.submit(entry, PATIENCE_MS)
      return null
    } catch (error) {
      const fault = asNodeError(error)
      telemetry.log('warn', 'the document of a swarm could not be made', { swarm: name, reason: fault.message })
      return fault
    }
  }

  /**
   * The entry that makes the document or adds new participants; null: nothing to do.
   * @throws NodeError CONFLICT as {@link knownLengths}
   */
  async #entry(name: string, participants: readonly NodeId[]): Promise<EntryBody | null> {
    const { clock, log, self, streams } = this.#deps
    const { mesh, documents, removedDocuments } = log.view()
    if (removedDocuments.has(name)) return null
    const record = documents.get(name)
    const before = record?.access?.access
    if (mesh === null || participants.every((node) => before?.see.members.includes(node))) return null
    const members = [...new Set([...(before?.see.members ?? []), ...participants])].slice(0, MAX_LISTED)
    const rule = { members, maxTier: null, sandboxes: [], unsandboxed: false }
    const access = { see: rule, write: rule, serial: (before?.serial ?? 0) + 1 }
    if (record === undefined) return { kind: 'document', mesh: mesh.id, name, access, at: clock.now() }
    // Rules that a caller set since are the caller's, whatever they contain.
    const isOurs = record.creator === self && record.access?.by === self && !(await this.#theirs()).has(name)
    if (!isOurs) return null
    return { kind: 'document-access', mesh: mesh.id, name, access, lengths: await knownLengths(streams, record) }
  }

  /**
   * Removes the documents of swarms that this node no longer knows, except those with rules set by a caller. Never
   * rejects.
   */
  async removeExpired(): Promise<void> {
    const { telemetry } = this.#deps
    try {
      for (const name of await this.#made()) if (await this.#isOver(name)) await this.#forget(name)
    } catch (error) {
      telemetry.log('warn', 'the documents of expired swarms could not be removed', { reason: messageOf(error) })
    }
  }

  /** Is the swarm of a document gone, or the document itself? Such a document is removed, or needs no look any more. */
  async #isOver(name: string): Promise<boolean> {
    if (this.#making.has(name) || (await this.#isKnown(name))) return false
    const { documents, mesh } = this.#deps.log.view()
    const record = documents.get(name)
    const isOurs = record?.creator === this.#deps.self && record.access?.by === this.#deps.self
    if (!isOurs || mesh === null || (await this.#theirs()).has(name)) return true
    await this.#deps.log.submit(
      { kind: 'document-removed', mesh: mesh.id, name, at: this.#deps.clock.now() },
      PATIENCE_MS
    )
    return true
  }

  /** Is the swarm in memory or in the ledger? */
  async #isKnown(id: string): Promise<boolean> {
    const { swarms, swarmStore } = this.#deps
    if (swarms.inMemory(id) !== undefined) return true
    for await (const head of swarmStore.heads(id)) if (head.id === id) return true
    return false
  }

  async #made(): Promise<readonly string[]> {
    return (await this.#deps.store.read<string[]>(STORED_MADE)) ?? []
  }

  async #note(name: string): Promise<void> {
    await this.#write((names) => [...names.filter((one) => one !== name), name])
  }

  async #forget(name: string): Promise<void> {
    await this.#write((names) => names.filter((one) => one !== name))
  }

  /** One change of the list after the other. */
  #write(change: (names: readonly string[]) => readonly string[]): Promise<void> {
    const done = this.#writing.then(async () => this.#deps.store.write(STORED_MADE, change(await this.#made())))
    this.#writing = done.catch(() => {})
    return done
  }

  /** Names of documents with rules set at this node. */
  #theirs(): Promise<Set<string>> {
    this.#handedOver ??= this.#deps.store.read<string[]>(STORED).then(
      (names) => new Set(names),
      (error: unknown) => {
        // The next caller reads it again.
        this.#handedOver = null
        throw error
      }
    )
    return this.#handedOver
  }

  /** Resolves when `isSo` returns true, or after {@link PATIENCE_MS}. */
  async #until(isSo: () => boolean): Promise<void> {
    const { clock, log } = this.#deps
    const found = new Abort()
    const stop = log.onChange(() => {
      if (isSo()) found.abort()
    })
    await wait(clock, PATIENCE_MS, found)
    stop()
  }
}

function maySee(view: MembershipView, name: string, node: NodeId): boolean {
  const record = view.documents.get(name)
  return record !== undefined && memberAccess(view, record, node).maySee
}

/** The agents that may take part in a swarm. */
export class EligibleAgents {
  readonly #deps: SurveyDeps

  constructor(deps: SurveyDeps) {
    this.#deps = deps
  }

  /** The nodes of the agents that are eligible now for some stage of a swarm. */
  nodesOf(head: Parameters<typeof surveyByNeed>[1]): NodeId[] {
    const allowed = surveyByNeed(this.#deps, head, null).flatMap((one) => one.allowed)
    return allowed.flatMap((agent) => parseAddress(agent)?.nodeId ?? [])
  }
}
