import type Corestore from 'corestore'
import Autobase from 'autobase'
import crypto from 'hypercore-crypto'
import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { bytesFromText, bytesToText, keyFromText, keyToText, utf8 } from '../../kit/ids.js'
import type { MeshId, NodeId } from '../../kit/ids.js'
import type { Hash, Sign, Verify } from '../../kit/sign.js'
import { chainOf } from '../../domain/membership/chain.js'
import { decodeInviteCode } from '../../domain/membership/invite-code.js'
import { seal } from '../../domain/membership/signing.js'
import type { Certificate, CertificateChain, SignedCertificate } from '../../domain/membership/types.js'
import { firstView, isAdmin } from '../../domain/membership/view.js'
import type { Links, MemberLog, Membership, Pairing } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { openLinks } from './links.js'
import type { MeshLinks } from './links.js'
import { openLog } from './log.js'
import type { Log } from './log.js'
import type { Network } from './network.js'
import { openPairing, refusal, requestJoin } from './pairing.js'
import type { AdminPairing, CodeNetwork } from './pairing.js'

/** ed25519 signature check. */
export const verify: Verify = (message, signature, publicKey) =>
  signature.byteLength === 64 && publicKey.byteLength === 32 && crypto.verify(message, signature, publicKey)

/** BLAKE2b-256 of the parts. */
export const hash: Hash = (...parts) => crypto.hash(parts)

/** How long a newcomer waits for an admin, in milliseconds. */
const JOIN_TIMEOUT_MS = 20_000
/** How long a newcomer waits for its certificate after an admin confirmed, in milliseconds. */
const GRANT_TIMEOUT_MS = 15_000
/** How long a step of closing may take, in milliseconds; on loopback answers come at once or never. */
const CLOSE_MS = 2000
const CLOSE_LOCAL_MS = 500

/** What the home remembers of the mesh. Holds the mesh's secret: a file of mode 0600. */
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
}

/** What a mesh is opened with. */
export interface MeshParts {
  readonly store: Corestore
  readonly network: Network
  readonly codeNetwork: CodeNetwork
  readonly keyPair: { readonly publicKey: Uint8Array; readonly secretKey: Uint8Array }
  readonly software: string
  readonly clock: Clock
  readonly telemetry: Telemetry
  onRefusedStream(peer: NodeId, code: string, reason: string): void
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
  /** What the home must remember; again whenever it changes. */
  state(): MeshState
  onState(listener: (state: MeshState) => void): void
  /** Resolves when the mesh put this node out: REVOKED or an INVITE_ code. Never rejects. */
  readonly expelled: Promise<NodeError>
  /** Blocks in this node's own writer core. */
  ownLength(): number
  close(): Promise<void>
}

/** Founds a mesh with this node as its owner. */
export async function foundMesh(parts: MeshParts, options: { name: string; meshName: string; epoch: number }): Promise<Mesh> {
  const nodeId = keyToText(parts.keyPair.publicKey)
  const sign = signer(parts)
  const log = await openLog({ ...logParts(parts, sign), store: namespaced(parts.store, options.epoch), mesh: null })
  const at = parts.clock.now()
  const body: Certificate = {
    mesh: log.meshId,
    nodeKey: nodeId,
    name: options.name,
    maxTier: 0,
    mayInvite: true,
    mayWrite: true,
    issuedAt: at,
    serial: 1,
    issuer: nodeId
  }
  const certificate = seal('certificate', body, { id: nodeId, sign })
  await log.submit({ kind: 'founding', mesh: log.meshId, name: options.meshName, certificate, coreKey: log.coreKey, at })
  const state: MeshState = {
    v: 1,
    key: keyToText(log.key),
    encryptionKey: bytesToText(log.encryptionKey),
    owner: nodeId,
    name: options.meshName,
    chain: [certificate],
    epoch: options.epoch
  }
  return assemble(parts, { log, state, links: openLinks(swarmParts(parts)) })
}

/** Opens the mesh that the home remembers. */
export async function reopenMesh(parts: MeshParts, state: MeshState): Promise<Mesh> {
  const encryptionKey = bytesFromText(state.encryptionKey)
  if (encryptionKey === null || encryptionKey.byteLength !== 32) throw new NodeError('STORE_DAMAGED', 'the mesh key in the home is damaged')
  const mesh = { key: keyFromText(state.key), encryptionKey }
  const log = await openLog({ ...logParts(parts, signer(parts)), store: namespaced(parts.store, state.epoch), mesh })
  return assemble(parts, { log, state, links: openLinks(swarmParts(parts)) })
}

/** Joins a mesh by an invite code. @throws NodeError as {@link requestJoin} and INVITE_INVALID for a garbled code. */
export async function joinMesh(
  parts: MeshParts,
  options: { code: string; name: string; epoch: number; timeoutMs?: number }
): Promise<Mesh> {
  const decoded = decodeInviteCode(options.code, hash)
  if (!decoded.ok) throw new NodeError('INVITE_INVALID', `the invite code is garbled: ${decoded.reason}`)
  const nodeId = keyToText(parts.keyPair.publicKey)
  const sign = signer(parts)
  const links = openLinks(swarmParts(parts))
  let log: Log | null = null
  try {
    const coreKey = keyToText(await Autobase.getLocalKey(namespaced(parts.store, options.epoch)))
    const paired = await requestJoin(
      { swarm: links.swarm, nodeId, sign, verify, hash, clock: parts.clock, telemetry: parts.telemetry },
      { invite: decoded.invite, coreKey, name: options.name, timeoutMs: options.timeoutMs ?? JOIN_TIMEOUT_MS }
    )
    log = await openLog({
      ...logParts(parts, sign),
      store: namespaced(parts.store, options.epoch),
      mesh: { key: paired.key, encryptionKey: paired.encryptionKey }
    })
    const state: MeshState = {
      v: 1,
      key: keyToText(paired.key),
      encryptionKey: bytesToText(paired.encryptionKey),
      owner: paired.info.owner,
      name: paired.info.name,
      chain: [],
      epoch: options.epoch
    }
    const mesh = assemble(parts, { log, state, links })
    await Promise.race([mesh.granted(parts.clock), mesh.expelled.then((error) => Promise.reject(error))])
    return mesh
  } catch (error) {
    await timely(links.close(), parts.clock)
    if (log !== null) await timely(log.close(), parts.clock)
    throw error
  }
}

function namespaced(store: Corestore, epoch: number): Corestore {
  return store.namespace(`a2a-node/mesh/${epoch}`)
}

function signer(parts: MeshParts): Sign {
  return (message) => crypto.sign(message, parts.keyPair.secretKey)
}

function logParts(parts: MeshParts, sign: Sign): Omit<Parameters<typeof openLog>[0], 'store' | 'mesh'> {
  return { nodeId: keyToText(parts.keyPair.publicKey), sign, verify, clock: parts.clock, telemetry: parts.telemetry }
}

function swarmParts(parts: MeshParts): Parameters<typeof openLinks>[0] {
  return {
    network: parts.network,
    networkKind: parts.codeNetwork.network,
    keyPair: parts.keyPair,
    software: parts.software,
    clock: parts.clock,
    hash,
    verify,
    telemetry: parts.telemetry,
    onRefused: (peer, code, reason) => parts.onRefusedStream(peer, code, reason)
  }
}

interface Assembled extends Mesh {
  /** Resolves when the own certificate is there. */
  granted(clock: Clock): Promise<void>
}

/** Ties log, links and pairing together. */
function assemble(parts: MeshParts, made: { log: Log; state: MeshState; links: MeshLinks }): Assembled {
  const { log, links } = made
  const nodeId = keyToText(parts.keyPair.publicKey)
  const sign = signer(parts)
  const stateListeners: ((state: MeshState) => void)[] = []
  const grantWaiters: (() => void)[] = []
  let state = made.state
  let expel: (error: NodeError) => void = () => {}
  const expelled = new Promise<NodeError>((resolve) => {
    expel = resolve
  })

  function remember(chain: CertificateChain): void {
    if (chain.length === 0 || JSON.stringify(chain) === JSON.stringify(state.chain)) return
    state = { ...state, chain, name: log.view().mesh?.name ?? state.name }
    for (const listener of stateListeners) listener(state)
    for (const resolve of grantWaiters.splice(0)) resolve()
  }

  function ownChain(): CertificateChain | null {
    const known = chainOf(log.view(), nodeId)
    if (known !== null) return known
    return state.chain.length === 0 ? null : state.chain
  }

  function onView(): void {
    const view = log.view()
    const member = view.members.get(nodeId)
    const refused = view.refusals.get(nodeId)
    if (member !== undefined && member.revoked !== null) expel(refusal('REVOKED'))
    else if (member === undefined && refused !== undefined) expel(refusal(refused.code))
    const chain = chainOf(view, nodeId)
    if (chain !== null) remember(chain)
    pairing.review()
    links.review()
  }

  /** An admin can put this node out anyway, so its word is enough; others are only logged. */
  function onRefused(code: ErrorCode, reason: string, peer: NodeId): void {
    parts.telemetry.log('warn', 'a member refuses this node', { peer, code, reason })
    const issuer = state.chain[0]?.body.issuer
    const trusted = peer === state.owner || peer === issuer || isAdmin(log.view(), peer)
    if (trusted && (code === 'REVOKED' || code.startsWith('INVITE_'))) expel(refusal(code))
  }

  links.bind({
    identity: {
      meshKey: log.key,
      encryptionKey: log.encryptionKey,
      // Before the log has come, the root of trust is what the invite said.
      view: () => (log.view().mesh === null ? firstView({ mesh: log.meshId, name: state.name, owner: state.owner }) : log.view()),
      chain: ownChain,
      onGrant: (chain) => {
        const leaf = chain[0]
        if (leaf === undefined || leaf.body.nodeKey !== nodeId || log.view().members.has(nodeId)) return
        remember(chain)
        links.review()
      },
      onRefused
    },
    topic: hash(utf8('a2a-node/topic'), log.key, log.encryptionKey),
    replicate: (stream) => log.replicate(stream),
    appendFor: (entry) => log.appendFor(entry),
    onLink: () => log.nudge()
  })
  log.setCourier((entry) => links.courier(entry))
  const pairing: AdminPairing = openPairing({
    swarm: links.swarm,
    nodeId,
    sign,
    verify,
    hash,
    clock: parts.clock,
    telemetry: parts.telemetry,
    log,
    network: parts.codeNetwork
  })
  log.onChange(onView)
  onView()

  return {
    nodeId,
    meshId: log.meshId,
    meshName: state.name,
    owner: state.owner,
    links,
    log,
    pairing,
    sign,
    expelled,
    certificate: (): SignedCertificate => {
      const own = log.view().members.get(nodeId)?.certificate ?? state.chain[0]
      if (own === undefined) throw new NodeError('INTERNAL', 'this node has no certificate yet')
      return own
    },
    state: () => state,
    onState: (listener) => void stateListeners.push(listener),
    ownLength: () => log.ownLength(),
    granted: (clock) =>
      new Promise((resolve, reject) => {
        if (state.chain.length > 0) return resolve()
        const timer = clock.after(GRANT_TIMEOUT_MS, () => reject(refusal('NO_ADMIN_ONLINE')))
        grantWaiters.push(() => {
          clock.clear(timer)
          resolve()
        })
      }),
    close: async () => {
      // Unannouncing asks the DHT; where nobody answers (the bootstrap may have gone first) the limit ends it.
      const limit = parts.codeNetwork.network === 'local' ? CLOSE_LOCAL_MS : CLOSE_MS
      // What is left open then ends with the network, which its owner closes by force.
      await timely(Promise.all([pairing.close(), links.close()]), parts.clock, limit)
      if (!(await timely(log.close(), parts.clock, CLOSE_MS))) parts.telemetry.log('warn', 'closing the log took too long')
    }
  }
}

/** Waits for a step of closing, but not for ever; true when it ended in time. Failures of closing are not the caller's. */
async function timely(step: Promise<unknown>, clock: Clock, limitMs: number = CLOSE_MS): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(limitMs, () => resolve(false))
    step.then(done, done)
    function done(): void {
      clock.clear(timer)
      resolve(true)
    }
  })
}
