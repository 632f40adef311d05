import type { SwarmOfPairing } from 'blind-pairing'
import type Corestore from 'corestore'
import type { NoiseStream } from 'hyperswarm'
import type { Clock, Timer } from '../../../kit/clock.js'
import { NodeError, STOP_AND_REPAIR } from '../../../kit/errors.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { keyToText, utf8 } from '../../../kit/ids.js'
import type { MeshId, NodeId } from '../../../kit/ids.js'
import type { Sign } from '../../../kit/sign.js'
import { LOG_SHARE_LIMITS } from '../../../domain/membership/log-share.js'
import { ownSkew, type PeerClock } from '../../../domain/membership/clock-skew.js'
import { chainOf, verifyChain } from '../../../domain/membership/chain.js'
import { mayPutOut } from '../../../domain/membership/refusal.js'
import type { CertificateChain, MembershipView, SignedCertificate } from '../../../domain/membership/types.js'
import { firstView } from '../../../domain/membership/view.js'
import type { Links, MemberLog, Membership, Pairing } from '../../../ports/mesh.js'
import type { LogProblem, Problem } from '../../../ports/node-api.js'
import type { AuditEvent } from '../../../ports/audit.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { CoreCare } from '../log/core-care.js'
import type { CoreFault } from '../log/guarded-base.js'
import type { GateRefusal } from '../links/hello.js'
import { otherOwner, refusedJoin } from '../pairing/join.js'
import { Quarantine } from '../log/quarantine.js'
import type { PeerLinks } from '../links/links.js'
import type { AutobaseLog } from '../log/log.js'
import { CertificateWait } from './certificate-wait.js'
import { gateProblems } from './gate-problems.js'
import type { MeshBinding } from './mesh-binding.js'
import type { Network } from './network.js'
import { pathProblems } from './path-problems.js'
import type { NetworkState } from './reachability.js'
import { OwnCore } from '../log/own-core.js'
import { AdminPairing } from '../pairing/pairing.js'
import type { CodeNetwork } from '../pairing/pairing.js'
import { hash, signer, verify } from './sodium.js'
import { LOG_NOT_HERE } from '../log/missing-log.js'
import { timely } from './timely.js'

/**
 * How long after a refusal of its invite a newcomer still waits for its certificate, in milliseconds: any member may
 * lie.
 */
const REFUSED_MS = 2000
/** How long a step of closing may take, in milliseconds; on loopback answers come at once or never. */
const CLOSE_MS = 2000
const CLOSE_LOCAL_MS = 500

/** How long a newcomer waits for the log to show its own admission, in milliseconds; it works before that, too. */
const SETTLE_MS = 5000
const FULL_CORE: Problem = {
  code: 'OVERLOADED',
  message:
    'this node has written its share of the mesh log; other writers append its entries, and its changes wait while none of them is online',
  next: 'a2a-node peers'
}

const NO_CORE_LEFT: Problem = {
  code: 'OVERLOADED',
  message: `this node had ${LOG_SHARE_LIMITS.maxCores} cores of the mesh log, as many as a member may have: that of this restored home is not read, so other writers append its entries`,
  next: 'a2a-node start --home <new home> --join <code>   # as a new node; then revoke this one'
}

/** The home's record of the mesh. Holds the mesh's secret: a file of mode 0600. */
export interface MeshState {
  readonly v: 1
  /** z32 of the Autobase key. */
  readonly key: string
  /** z32 of the Autobase encryption key. */
  readonly encryptionKey: string
  readonly owner: NodeId
  readonly name: string
  /** Own certificate and those above it, as last known. */
  readonly chain: CertificateChain
  /** Namespace of the log's cores in the store; a failed join leaves its own behind and takes the next. */
  readonly epoch: number
  /** Set when the code of the join named both machines as one person's. */
  readonly acceptsInviter?: true
  /** Set when the mesh has put this node out: it does not start again with it. */
  readonly isRevoked?: true
  /** Set in a home that was restored or repaired, until its own core has taken the place of the former one. */
  readonly takesOver?: true
  /** Set when another home replaced it: it does not start again. */
  readonly isReplaced?: true
  /** Set when others have more of the own core than this home: it writes nothing more to it. */
  readonly isRolledBack?: true
  /** Keys (z32) of writer cores that are forked. */
  readonly forked?: readonly string[]
}

/** Problems of a network in which no other node of the DHT answers. */
const CUT_OFF: ReadonlySet<ErrorCode> = new Set(['NETWORK_OFFLINE', 'BOOTSTRAP_OFFLINE', 'BOOTSTRAP_MISSING'])

/** Dependencies of a mesh. */
export interface MeshDeps {
  readonly store: Corestore
  readonly network: Network
  readonly codeNetwork: CodeNetwork
  readonly keyPair: { readonly publicKey: Uint8Array; readonly secretKey: Uint8Array }
  readonly software: string
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Links to members, at most. Default 64. */
  readonly maxLinks?: number
  /** A peer passed the gate: its stream may carry more than the log. */
  onPassed?(peer: NodeId, stream: NoiseStream): void
  /**
   * A link opened, or a join failed: the skew of this machine's clock by the connected peers; null within the bound.
   */
  onClock?(skew: PeerClock | null): void
  /** A stream was refused at the gate, or its peer broke the protocol: for the audit. */
  onRefused(refusal: AuditEvent): void
  /** Why the store takes no writes now; null: it does. Absent: not checked. */
  writeFault?(): NodeError | null
  /** The record of the log's cores at which starts ended, or that are set aside. Absent: none. */
  readonly care?: CoreCare
}

/** This node in its mesh: the ports of the mesh adapter. */
export interface Mesh extends Membership {
  readonly meshId: MeshId
  readonly meshName: string
  readonly owner: NodeId
  readonly links: Links
  readonly log: MemberLog
  readonly pairing: Pairing
  readonly sign: Sign
  /** The record for the home; again whenever it changes. */
  state(): MeshState
  onState(listener: (state: MeshState) => void): void
  /** Resolves when the mesh put this node out: REVOKED or an INVITE_ code. Never rejects. */
  readonly expelled: Promise<NodeError>
  /** Resolves when the log here shows this node's own admission, or after 5 s. Call it when the links are up. */
  settled(): Promise<void>
  /** Blocks in this node's own writer core. */
  ownLength(): number
  /** Faults of the network, of clocks and of cores, for `status`. */
  problems(): readonly Problem[]
  /** The same of one member, for `peers`; null when there is none. */
  problemOf(nodeId: NodeId): Problem | null
  /** Why the log shows nothing of the mesh; empty when it does. */
  logProblems(): readonly LogProblem[]
  close(): Promise<void>
}

/** Dependencies of {@link MeshNode}. */
export interface MeshNodeDeps {
  readonly deps: MeshDeps
  readonly log: AutobaseLog
  readonly links: PeerLinks
  /** The streams of the links, for pairing. */
  readonly swarm: SwarmOfPairing
  readonly state: MeshState
  /** The invite by which this node just joined (z32); null when it did not. */
  readonly inviteId: string | null
}

/** This node in its mesh: log, links and pairing tied together. */
export class MeshNode implements Mesh {
  readonly nodeId: NodeId
  readonly meshId: MeshId
  readonly meshName: string
  readonly owner: NodeId
  readonly log: AutobaseLog
  readonly links: PeerLinks
  readonly pairing: AdminPairing
  readonly sign: Sign
  readonly expelled: Promise<NodeError>
  readonly acceptsInviter: boolean
  readonly #deps: MeshDeps
  readonly #stateListeners: ((state: MeshState) => void)[] = []
  readonly #certificateWait = new CertificateWait()
  readonly #joinedBy: string | null
  readonly #ownCore: OwnCore
  readonly #quarantine: Quarantine
  #state: MeshState
  /** Runs after a newcomer was told that its invite is lost. */
  #refusedTimer: Timer | null = null
  #tellExpelled: (error: NodeError) => void = () => {}

  constructor({ deps, log, links, swarm, state, inviteId }: MeshNodeDeps) {
    this.#deps = deps
    this.#state = state
    this.#joinedBy = inviteId
    this.acceptsInviter = state.acceptsInviter === true
    this.nodeId = keyToText(deps.keyPair.publicKey)
    this.meshId = log.meshId
    this.meshName = state.name
    this.owner = state.owner
    this.log = log
    this.links = links
    this.sign = signer(deps.keyPair.secretKey)
    this.expelled = new Promise((resolve) => void (this.#tellExpelled = resolve))
    links.bind(this.#binding())
    const { clock, telemetry, codeNetwork: network } = deps
    const { nodeId, sign } = this
    this.#ownCore = new OwnCore({
      nodeId,
      coreKey: log.coreKey,
      takesOver: state.takesOver === true,
      clock,
      claim: (serial) => log.submit({ kind: 'core', mesh: this.meshId, coreKey: log.coreKey, serial }),
      onAdmitted: () => this.#setState(withoutTakeover(this.#state)),
      onReplaced: () => this.#expel('CONFLICT')
    })
    this.#quarantine = this.#newQuarantine()
    log.bind((entry, options) => links.relay(entry, options), this.#quarantine)
    log.unreadable.onBad((coreKey, fault) => this.#onUnreadable(coreKey, fault))
    const isCutOff = (): boolean => isSilent(deps.network.state)
    this.pairing = new AdminPairing({ swarm, nodeId, sign, verify, hash, clock, telemetry, log, network, isCutOff })
    log.onChange(() => this.#onView())
    void log.own.lost.then(() => this.#onRolledBack())
    void log.failed.then((error) => this.#tellExpelled(failedLog(error, deps.writeFault?.() ?? null)))
    this.#onView()
  }

  certificate(): SignedCertificate {
    const own = this.log.view().members.get(this.nodeId)?.certificate ?? this.#state.chain[0]
    if (own === undefined) throw new NodeError('INTERNAL', 'this node has no certificate yet')
    return own
  }

  state(): MeshState {
    return this.#state
  }

  onState(listener: (state: MeshState) => void): void {
    this.#stateListeners.push(listener)
  }

  ownLength(): number {
    return this.log.own.length
  }

  /**
   * Resolves when the own certificate has come and leads to the owner. @throws NodeError NO_ADMIN_ONLINE when none
   * comes in time, INVITE_INVALID when one came that does not lead to the owner.
   */
  granted(clock: Clock, joinMs = 0): Promise<void> {
    return this.#state.chain.length > 0 ? Promise.resolve() : this.#certificateWait.start(clock, joinMs)
  }

  settled(): Promise<void> {
    return admitted(this.log, this.nodeId, this.#deps.clock)
  }

  problems(): readonly Problem[] {
    const own = ownFault(this.log)
    const bounds = [...(this.log.own.isFull ? [FULL_CORE] : []), ...(this.#ownCore.isRefused ? [NO_CORE_LEFT] : [])]
    const view = this.log.view()
    const network = pathProblems(this.#deps.network, this.links.list(), view)
    const gates = gateProblems(this.links, view)
    return [...own, ...bounds, ...network, ...gates, ...this.#quarantine.problems()]
  }

  logProblems(): readonly LogProblem[] {
    return this.log.view().mesh === null ? [LOG_NOT_HERE] : []
  }

  problemOf(nodeId: NodeId): Problem | null {
    return this.#quarantine.problemOf(nodeId)
  }

  async close(): Promise<void> {
    const { clock, telemetry, codeNetwork } = this.#deps
    clock.clear(this.#refusedTimer)
    this.#ownCore.close()
    // Unannouncing asks the DHT; without an answer (the bootstrap may have gone first) the limit ends it.
    const limitMs = codeNetwork.network === 'local' ? CLOSE_LOCAL_MS : CLOSE_MS
    // Anything left open ends with the network, which its owner closes by force.
    await timely(Promise.all([this.pairing.close(), this.links.close()]), clock, limitMs)
    if (!(await timely(this.log.close(), clock, CLOSE_MS))) telemetry.log('warn', 'closing the log took too long')
  }

  #binding(): MeshBinding {
    const { log } = this
    return {
      identity: {
        meshKey: log.key,
        encryptionKey: log.encryptionKey,
        view: () => this.#view(),
        chain: () => this.#chain(),
        onGrant: (chain) => this.#onGrant(chain),
        onRefused: (refusal, peer) => this.#onRefused(refusal, peer)
      },
      topic: hash(utf8('a2a-node/topic'), log.key, log.encryptionKey),
      replicate: (stream) => {
        log.replicate(stream)
        this.#deps.onPassed?.(keyToText(stream.remotePublicKey), stream)
      },
      appendFor: (entry, peer) => log.appendFor(entry, peer),
      onLink: (relay) => {
        log.linked(relay)
        this.#deps.onClock?.(ownSkew(this.links.clocks()))
      }
    }
  }

  /** Before the log has come, the invite names the root of trust. */
  #view(): MembershipView {
    const view = this.log.view()
    const { name, owner } = this.#state
    return view.mesh === null ? firstView({ mesh: this.meshId, name, owner }) : view
  }

  /** The own chain, by the view or as remembered; null before the first. */
  #chain(): CertificateChain | null {
    const known = chainOf(this.log.view(), this.nodeId)
    if (known !== null) return known
    return this.#state.chain.length === 0 ? null : this.#state.chain
  }

  #onView(): void {
    const view = this.log.view()
    // The code lied, or an earlier version of this program believed an impostor.
    if (view.mesh !== null && view.mesh.owner !== this.owner) return this.#tellExpelled(otherOwner())
    const member = view.members.get(this.nodeId)
    const refused = view.refusals.get(this.nodeId)
    if (member !== undefined && member.revoked !== null) this.#expel('REVOKED')
    else if (member === undefined && refused !== undefined && this.#isAboutThis(refused)) this.#expel(refused.code)
    const chain = chainOf(view, this.nodeId)
    if (chain !== null) this.#remember(chain)
    this.#ownCore.review(() => this.log.view())
    this.pairing.review()
    this.links.review()
  }

  /** Where the view shows no admission yet, a chain that holds up to the owner of the code is as good. */
  #onGrant(chain: CertificateChain): void {
    const view = this.#view()
    if (view.members.has(this.nodeId)) return
    const { meshId: mesh, owner, nodeId: leaf } = this
    const verdict = verifyChain(chain, { mesh, owner, leaf, now: this.#deps.clock.now(), verify, view })
    if (!verdict.ok) return this.#certificateWait.refused(verdict.reason)
    this.#remember(chain)
    this.links.review()
  }

  #onRefused(refusal: GateRefusal, peer: NodeId): void {
    const { code, reason } = refusal
    const own = this.#chain()?.[0]?.body ?? null
    const standing = { view: this.log.view(), owner: this.owner, own, now: this.#deps.clock.now() }
    const isBelieved = mayPutOut({ peer, code }, standing) && this.#isAboutThis(refusal)
    this.#deps.telemetry.log(isBelieved ? 'warn' : 'debug', 'a peer refuses this node', { peer, code, reason })
    if (!isBelieved) return
    if (this.#chain() === null && peer !== this.owner) this.#expelLater(code)
    else this.#expel(code)
  }

  /** No rights are known yet: the certificate, when it comes in time, counts more than the refusal. */
  #expelLater(code: ErrorCode): void {
    this.#refusedTimer ??= this.#deps.clock.after(REFUSED_MS, () => {
      if (this.#chain() === null) this.#expel(code)
    })
  }

  /** A refusal by an earlier invite says nothing of this membership. */
  #isAboutThis({ inviteId }: { readonly inviteId?: string }): boolean {
    const own = this.#chain()?.[0]?.body.inviteId ?? this.#joinedBy
    return inviteId === undefined || own === null || inviteId === own
  }

  #newQuarantine(): Quarantine {
    return new Quarantine({
      self: this.nodeId,
      forked: this.#state.forked ?? [],
      view: () => this.log.view(),
      onForked: (forked, member) => {
        this.#setState({ ...this.#state, forked })
        this.#onQuarantine('CONFLICT', 'it signed two different blocks of the mesh log at one place', member)
      },
      unreadable: (coreKey) => this.log.unreadable.badBlock(coreKey)
    })
  }

  #onUnreadable(coreKey: string, fault: CoreFault): void {
    const member = this.#quarantine.memberOf(coreKey)
    this.#deps.care?.setAside(coreKey, fault, member)
    this.#onQuarantine(fault.code, `a core of the log: ${fault.reason}`, member)
  }

  #onQuarantine(code: 'CONFLICT' | CoreFault['code'], reason: string, member: NodeId | null): void {
    this.#deps.telemetry.log('error', 'a member is in quarantine', { peer: member ?? 'nobody', reason })
    if (member !== null) this.#deps.onRefused({ kind: 'strike', code, rule: 'quarantine', reason, peer: member })
  }

  #onRolledBack(): void {
    this.#deps.telemetry.log('error', 'this node writes nothing more', { reason: this.log.own.fault()?.message ?? '' })
    this.#setState({ ...this.#state, isRolledBack: true })
  }

  #expel(code: ErrorCode): void {
    if (code === 'REVOKED' && this.#state.isRevoked !== true) this.#setState({ ...this.#state, isRevoked: true })
    if (code === 'CONFLICT') this.#setState({ ...this.#state, isReplaced: true })
    this.#tellExpelled(refusedJoin(code, ownSkew(this.links.clocks())))
  }

  #remember(chain: CertificateChain): void {
    if (chain.length === 0 || JSON.stringify(chain) === JSON.stringify(this.#state.chain)) return
    this.#setState({ ...this.#state, chain, name: this.log.view().mesh?.name ?? this.#state.name })
    this.#certificateWait.end()
  }

  #setState(state: MeshState): void {
    this.#state = state
    for (const listener of this.#stateListeners) listener(state)
  }
}

/**
 * The record of a home that takes the place of the node's former one, with its own cores (`epoch`: a number that no
 * other home has).
 */
export function takeOver(state: MeshState, epoch: number): MeshState {
  const { isReplaced: _, isRolledBack: __, ...kept } = state
  return { ...kept, epoch, takesOver: true }
}

/** Resolves when the log shows the member, or after 5 s. */
function admitted(log: AutobaseLog, nodeId: NodeId, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clear(timer)
      stop()
      resolve()
    }
    const look = (): void => {
      if (log.view().members.has(nodeId)) end()
    }
    const timer = clock.after(SETTLE_MS, end)
    const stop = log.onChange(look)
    look()
  })
}

/** The fault of the own core as a problem; none while it is whole. */
function ownFault(log: AutobaseLog): readonly Problem[] {
  const { code, message } = log.own.fault() ?? {}
  return code === undefined || message === undefined ? [] : [{ code, message, next: STOP_AND_REPAIR }]
}

function withoutTakeover(state: MeshState): MeshState {
  const { takesOver, ...rest } = state
  return takesOver === undefined ? state : rest
}

function failedLog(cause: Error, fault: NodeError | null): NodeError {
  if (fault !== null)
    return new NodeError(fault.code, fault.message, { next: [...fault.next, 'a2a-node start'], cause })
  return new NodeError('STORE_DAMAGED', `the mesh log closed itself: ${cause.message}`, { cause })
}

/** Does no other node of the DHT answer, as far as is known? */
function isSilent(network: Pick<NetworkState, 'problems'>): boolean {
  return network.problems().some(({ code }) => CUT_OFF.has(code))
}
