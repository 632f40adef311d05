import type Corestore from 'corestore'
import Autobase from 'autobase'
import type { SwarmOfPairing } from 'blind-pairing'
import { NodeError } from '../../../kit/errors.js'
import { bytesFromText, bytesToText, keyFromText, keyToText } from '../../../kit/ids.js'
import type { MeshId, NodeId } from '../../../kit/ids.js'
import type { InviteCode } from '../../../domain/membership/invites/invite-code.js'
import { ownSkew } from '../../../domain/membership/clock-skew.js'
import { seal } from '../../../domain/membership/signing.js'
import type { Certificate, MembershipView, SignedCertificate } from '../../../domain/membership/types.js'
import type { AuditEvent } from '../../../ports/audit.js'
import { explainedJoin } from '../pairing/explained-join.js'
import { type JoinDeps, type Paired, readInviteCode, requestJoin } from '../pairing/join.js'
import { MAX_LINKS, PeerLinks } from '../links/links.js'
import { AutobaseLog } from '../log/log.js'
import { pairingSwarm } from '../pairing/pairing-swarm.js'
import { MeshNode } from './mesh-node.js'
import type { MeshDeps, MeshState } from './mesh-node.js'
import { hash, signer, verify } from './sodium.js'
import { timely } from './timely.js'

/** How long a newcomer waits for an admin, in milliseconds. */
const JOIN_TIMEOUT_MS = 20_000
/** How long a step of giving up may take, in milliseconds. */
const GIVE_UP_MS = 2000

/** How a newcomer joins. */
export interface JoinMeshOptions {
  readonly code: string
  readonly name: string
  readonly epoch: number
  /** How long to wait for an admin. Default 20,000. */
  readonly timeoutMs?: number
}

/** Founds a mesh with this node as its owner. */
export async function foundMesh(
  deps: MeshDeps,
  options: { name: string; meshName: string; epoch: number }
): Promise<MeshNode> {
  const { name, meshName, epoch } = options
  const log = await openLog(deps, { epoch, mesh: null })
  const certificate = ownerCertificate(deps, log.meshId, name)
  const at = certificate.body.issuedAt
  await log.submit({ kind: 'founding', mesh: log.meshId, name: meshName, certificate, coreKey: log.coreKey, at })
  const { key, encryptionKey } = log
  const state = {
    ...firstState({ key, encryptionKey, epoch }, { owner: certificate.by, name: meshName }),
    chain: [certificate]
  }
  return new MeshNode({ deps, log, state, ...openLinks(deps), inviteId: null })
}

/** Opens the mesh that the home remembers. */
export async function reopenMesh(deps: MeshDeps, state: MeshState): Promise<MeshNode> {
  const isRolledBack = state.isRolledBack === true
  const log = await openLog(deps, { epoch: state.epoch, mesh: keysOf(state), isRolledBack })
  return new MeshNode({ deps, log, state, ...openLinks(deps), inviteId: null })
}

/**
 * Reads the log of a mesh as the last run left it, without a network.
 * @throws NodeError STORE_DAMAGED; errors of the store
 */
export async function readMembership(
  deps: Pick<MeshDeps, 'store' | 'keyPair' | 'clock' | 'telemetry'>,
  state: Pick<MeshState, 'key' | 'encryptionKey' | 'epoch'>
): Promise<MembershipView> {
  const log = await openLog(deps, { epoch: state.epoch, mesh: keysOf(state) })
  try {
    return log.view()
  } finally {
    await log.close()
  }
}

/**
 * Joins a mesh by an invite code. Resolves when this node has a certificate that leads to the owner whom the code
 * names.
 * @throws NodeError as {@link requestJoin} and {@link readInviteCode}; INVITE_INVALID when only others certified it.
 */
export async function joinMesh(deps: MeshDeps, options: JoinMeshOptions): Promise<MeshNode> {
  const code = readInviteCode(options.code)
  const { links, swarm } = openLinks(deps)
  let close = (): Promise<unknown> => timely(links.close(), deps.clock, GIVE_UP_MS)
  try {
    const { epoch } = options
    const paired = await pair(deps, { ...options, swarm, code, clocks: () => links.clocks() })
    const log = await openLog(deps, { epoch, mesh: paired })
    const state: MeshState = {
      ...firstState({ ...paired, epoch }, paired.info),
      ...(code.trust === 'mine' ? { acceptsInviter: true } : {})
    }
    const mesh = new MeshNode({ deps, log, links, swarm, state, inviteId: paired.inviteId })
    close = () => mesh.close()
    await Promise.race([
      mesh.granted(deps.clock, options.timeoutMs),
      mesh.expelled.then((error) => Promise.reject(error))
    ])
    return mesh
  } catch (error) {
    deps.onClock?.(ownSkew(links.clocks()))
    await close()
    if (error instanceof NodeError && error.code === 'INVITE_INVALID')
      deps.onRefused({ kind: 'refusal', code: error.code, rule: 'pairing', reason: error.message })
    throw explainedJoin(error, deps.network)
  }
}

async function pair(
  { store, keyPair, clock, telemetry }: MeshDeps,
  options: Omit<JoinMeshOptions, 'code'> & Pick<JoinDeps, 'swarm' | 'clocks'> & { readonly code: InviteCode }
): Promise<Paired> {
  const { swarm, clocks, code, name, epoch, timeoutMs = JOIN_TIMEOUT_MS } = options
  const coreKey = keyToText(await Autobase.getLocalKey(namespaced(store, epoch)))
  const nodeId = keyToText(keyPair.publicKey)
  const sign = signer(keyPair.secretKey)
  const asking = { swarm, clocks, nodeId, sign, verify, hash, clock, telemetry }
  return await requestJoin(asking, { code, coreKey, name, timeoutMs })
}

/** The keys of the log of a mesh. @throws NodeError STORE_DAMAGED */
function keysOf({ key, encryptionKey }: Pick<MeshState, 'key' | 'encryptionKey'>): {
  readonly key: Uint8Array
  readonly encryptionKey: Uint8Array
} {
  const secret = bytesFromText(encryptionKey)
  if (secret === null || secret.byteLength !== 32)
    throw new NodeError('STORE_DAMAGED', 'the mesh key in the home is damaged')
  return { key: keyFromText(key), encryptionKey: secret }
}

/** The state of a mesh in which this node has no certificate yet. */
function firstState(
  { key, encryptionKey, epoch }: { key: Uint8Array; encryptionKey: Uint8Array; epoch: number },
  { owner, name }: { owner: NodeId; name: string }
): MeshState {
  return { v: 1, key: keyToText(key), encryptionKey: bytesToText(encryptionKey), owner, name, chain: [], epoch }
}

function ownerCertificate({ keyPair, clock }: MeshDeps, mesh: MeshId, name: string): SignedCertificate {
  const nodeKey = keyToText(keyPair.publicKey)
  const body: Certificate = {
    mesh,
    nodeKey,
    name,
    maxTier: 0,
    mayInvite: true,
    mayWrite: true,
    issuedAt: clock.now(),
    serial: 1,
    issuer: nodeKey
  }
  return seal('certificate', body, { id: nodeKey, sign: signer(keyPair.secretKey) })
}

/** The part of a store in which the own cores of a mesh are. */
export function namespaced(store: Corestore, epoch: number): Corestore {
  return store.namespace(`a2a-node/mesh/${epoch}`)
}

/** The dependencies of a mesh that its log needs. */
type LogParts = Pick<MeshDeps, 'store' | 'keyPair' | 'clock' | 'telemetry' | 'writeFault' | 'care'>

function openLog(
  { store, keyPair, clock, telemetry, ...parts }: LogParts,
  {
    epoch,
    mesh,
    isRolledBack = false
  }: {
    epoch: number
    mesh: null | { readonly key: Uint8Array; readonly encryptionKey: Uint8Array }
    isRolledBack?: boolean
  }
): Promise<AutobaseLog> {
  const nodeId = keyToText(keyPair.publicKey)
  const sign = signer(keyPair.secretKey)
  const writeFault = (): NodeError | null => parts.writeFault?.() ?? null
  const care = parts.care === undefined ? {} : { care: parts.care }
  return AutobaseLog.open({
    store: namespaced(store, epoch),
    mesh,
    nodeId,
    sign,
    verify,
    clock,
    telemetry,
    writeFault,
    isRolledBack,
    ...care
  })
}

/** The links of a node, and the same streams for pairing. */
function openLinks(deps: MeshDeps): { links: PeerLinks; swarm: SwarmOfPairing } {
  const { network, codeNetwork, keyPair, software, clock, telemetry, maxLinks = MAX_LINKS } = deps
  const networkKind = codeNetwork.network
  const onRefused = (refusal: AuditEvent): void => deps.onRefused(refusal)
  const transport = network.openTransport(keyPair)
  const links = new PeerLinks({ transport, networkKind, software, clock, hash, verify, telemetry, maxLinks, onRefused })
  // A new bootstrap node has no records.
  network.onTakeover(() => links.refresh())
  // Without a network nothing was announced.
  network.state.onChange((problem) => {
    if (problem === null) links.refresh()
  })
  return { links, swarm: pairingSwarm(transport.rendezvous, links) }
}
