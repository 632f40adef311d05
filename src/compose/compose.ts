import type Corestore from 'corestore'
import { messageOf, NodeError } from '../kit/errors.js'
import { keyToText, type NodeId } from '../kit/ids.js'
import { NODE_NAME } from '../kit/names/rule.js'
import { TRUST_WORDS } from '../kit/names/trust.js'
import { safeName } from '../kit/names/safe-name.js'
import type { Audit } from '../ports/audit.js'
import type { Ledger } from '../ports/ledger.js'
import type { BackupInfo, BackupRequest, Problem } from '../ports/node-api.js'
import type { NodeStore } from '../ports/storage.js'
import { toAgentJson } from '../adapters/agents/schemas/agent-json.js'
import { createSchemaCompiler } from '../adapters/agents/schemas/compile-schema.js'
import type { DocumentCores } from '../adapters/mesh/documents/document-cores.js'
import type { Network } from '../adapters/mesh/network/network.js'
import type { NetworkState } from '../adapters/mesh/network/reachability.js'
import type { ReachSource } from '../ports/network/reach.js'
import type { LogMarks } from '../adapters/mesh/log/log-marks.js'
import { foundMesh, joinMesh, reopenMesh } from '../adapters/mesh/network/mesh.js'
import type { Mesh, MeshNode, MeshDeps, MeshState } from '../adapters/mesh/network/mesh-node.js'
import { readInviteCode, refusedJoin } from '../adapters/mesh/pairing/join.js'
import { ApprovalNotifier } from '../adapters/system/approval-notifier.js'
import { onNewApproval } from '../node/api/approvals.js'
import { onNewElsewhere } from '../node/api/machine-watch.js'
import type { ApprovalInfo } from '../ports/policy-api.js'
import type { CodeNetwork } from '../adapters/mesh/pairing/pairing.js'
import { hash, verify } from '../adapters/mesh/network/sodium.js'
import { damageError, storeError } from '../adapters/storage/home/store-errors.js'
import type { LedgerOnDisk } from '../adapters/storage/ledger/durable-ledger.js'
import { randomIds, randomSecret } from '../adapters/system/random-ids.js'
import { systemClock } from '../adapters/system/system-clock.js'
import { OPERATOR } from '../domain/card/card.js'
import { addressesOn, type CardAddresses } from '../domain/card/endpoints.js'
import { createNode } from '../node/node.js'
import type { NodeCore } from '../node/node.js'
import type { LastFault, LogState, NodeDeps } from '../node/dependencies.js'
import { writeBackup } from '../maintenance/backup.js'
import { WriteFaults } from '../adapters/storage/home/write-faults.js'
import { skewRecorder } from '../adapters/storage/home/skew-record.js'
import { settingsOf } from './node-settings.js'
import {
  claimForStart,
  coreMark,
  fullDisk,
  guardLedger,
  keepMark,
  logProblems,
  memoryProblems,
  rememberFlags,
  openHomeDocuments,
  openCare,
  openLogMarks,
  openAudit,
  openDocuments,
  openLastFault,
  openLedger,
  openPolicy,
  openStore,
  openTelemetry
} from './open-home.js'
import type { FreshHome } from '../adapters/storage/home/fresh-home.js'
import type { StartOptions, StartDeps } from './open-home.js'
import { type HomeNetwork, openHomeNetwork } from './network/open-network.js'
import { type NodeRecord, nodeRecord, type StoredRecord } from './node-record.js'
import { openAgents } from './open-agents.js'
import { MESH, NODE, type RunningNode, serveNode } from './running-node.js'
import { bindListeners } from './serve-http.js'
import { ConfigReload } from './config-reload.js'
import { LimitedRequests } from '../adapters/http/limited-requests.js'
import { PackageFaults } from './package-faults.js'
import { Unwind } from './unwind.js'
import { VERSION } from './version.js'
import { REDACT_KEYS } from '../adapters/telemetry/redact.js'

export type { StartOptions } from './open-home.js'
export type { RunningNode } from './running-node.js'
export { checkAgentFiles, importAgents, newAgentFiles, runAgentFile } from './agent-files.js'
export { sandboxOfHome } from './home-sandbox.js'
export { type AgentFileReport, checkAgentFile } from '../adapters/agents/files/check-file.js'

const DEFAULT_MESH_NAME = 'home'

/**
 * Starts a node: data directory, store, network, mesh, agents, control API, in this order. A failure undoes the earlier
 * steps.
 * @throws NodeError ALREADY_RUNNING, STORE_LOCKED, ALREADY_IN_MESH, NO_PERMISSION, DISK_FULL, PATH_TOO_LONG,
 * PORT_IN_USE, USAGE without `config` or `home`; INVITE_INVALID, INVITE_EXPIRED, INVITE_USED, INVITE_REVOKED, REVOKED,
 * NO_ADMIN_ONLINE
 */
export async function startNode(options: StartOptions): Promise<RunningNode> {
  checkGiven(options)
  const clock = systemClock()
  const telemetry = await openTelemetry(options, clock)
  options.packageOutput?.((text) => telemetry.log('warn', 'a package says', { text }))
  const faults = new PackageFaults()
  options.packageErrors?.((fault) => {
    faults.add(fault)
    telemetry.log('error', 'a package failed', {
      package: fault.package,
      reason: fault.error.stack ?? fault.error.message
    })
  })
  const unwind = new Unwind((name, error) =>
    telemetry.log('warn', `closing the ${name} failed`, { reason: messageOf(error) })
  )
  try {
    const reload = new ConfigReload(options.config, { clock, telemetry, source: options.configSource })
    reload.live(['log.level', 'log.redactKeys'], ({ log }) =>
      telemetry.adjust({
        level: options.log === null ? null : log.level,
        redactKeys: [...REDACT_KEYS, ...log.redactKeys]
      })
    )
    const writes = new WriteFaults({ clock })
    const deps = { options, clock, telemetry, unwind, faults, reload, writes }
    const node = await start(deps)
    if (options.memory !== undefined) await rememberFlags(options.home.startFlags, options.memory, deps)
    return node
  } catch (error) {
    await unwind.run()
    throw storeError(error, options.home.home)
  }
}

/** Checks the required options for callers without types. */
function checkGiven({ config, home }: Partial<StartOptions> = {}): void {
  if (config === undefined)
    throw new NodeError('USAGE', 'startNode needs `config`: that of loadConfig({ file: home.configFile })')
  if (home === undefined) throw new NodeError('USAGE', 'startNode needs `home`: that of resolveHome({ home })')
}

/**
 * Checks a home that is in a mesh.
 * @throws NodeError ALREADY_IN_MESH with a code; REVOKED, CONFLICT when the mesh has removed it
 */
function checkMember({ name, isRevoked, isReplaced }: MeshState, code: CodeNetwork | null): void {
  if (code !== null)
    throw new NodeError('ALREADY_IN_MESH', `this home is in the mesh ${safeName(name, NODE_NAME)} already`)
  if (isRevoked === true) throw refusedJoin('REVOKED')
  if (isReplaced === true) throw refusedJoin('CONFLICT')
}

function codeOf({ join }: StartOptions): CodeNetwork | null {
  return join === null ? null : readCode(join)
}

async function start(deps: StartDeps): Promise<RunningNode> {
  const { options, unwind } = deps
  const startedAt = deps.clock.now()
  // With `joinsOnce` a home in a mesh ignores the code, which may be used up.
  const early = options.joinsOnce === true ? null : codeOf(options)
  const fresh = await claimForStart(deps, startedAt)
  unwind.add('tries of failed writes', () => deps.writes.close())
  const lastFault = await openLastFault(deps)
  const limited = new LimitedRequests(deps)
  const { problems: exposed, ...listeners } = await bindListeners(deps, limited)
  const { documents, mended } = await openHomeDocuments(deps)
  const state = await documents.read<MeshState>(MESH)
  const policy = await openPolicy(deps, state === null)
  const code = state === null ? codeOf(options) : early
  if (state !== null) checkMember(state, code)
  const store = await openStore(options.home.store, { unwind, documents })
  const { audit, problems } = await openAudit(deps)
  const ledger = await openLedger(deps, documents)
  const stored = await documents.read<StoredRecord>(NODE)
  // In a mesh a node keeps the name that the mesh has for it.
  const record = nodeRecord({ config: options.config, name: state === null ? options.name : null, code, stored })
  const shared = openDocuments(deps)
  const guarded = guardLedger(deps, ledger)
  const home = { ...deps, fresh, store, documents, shared, audit, record, stored, state, ledger: guarded }
  const { mesh, logState, sockets, onUp, reach } = await openMesh(home)
  // Shared by node and agents, so equal schemas compile once.
  const compileSchema = createSchemaCompiler()
  const agents = openAgents(deps, { compileSchema, store: documents })
  const steady = [...mended, ...memoryProblems(options.memory), ...exposed, ...sockets.problems]
  const notifier = approvalNotifier(deps)
  const found = problemFinder(deps, steady, [{ problems }, guarded, agents.tools, limited, notifier])
  const lookForProblems = lookers(guarded, reach, deps.reload)
  const kept = { store: documents, documents: shared, ledger: guarded, audit, logState, policy }
  const made = { mesh, reach, network: record.network, sockets, agents: agents.source, compileSchema, problems: found }
  const node = buildNode(deps, { ...kept, ...made, lookForProblems, startedAt, lastFault })
  unwind.add('node', () => node.close())
  sockets.locate((peer) => addressesOf(node, peer))
  startNotices(deps, node, notifier)
  await node.start()
  await onUp()
  if (code !== null) await mesh.settled()
  return await serveNode(deps, { node, mesh, backup: backupWith(home, ledger, mesh), ...listeners, agents, documents })
}

/** The addresses on the card of a member's operator. */
function addressesOf({ registry }: NodeCore, peer: NodeId): CardAddresses {
  return addressesOn(registry.get({ agentId: OPERATOR, nodeId: peer }) ?? { endpoints: [] })
}

/** Finds the problems of the node: the steady ones, and the present ones of its parts. */
function problemFinder(
  { options, faults, reload, writes }: StartDeps,
  steady: readonly Problem[],
  parts: readonly { problems(): readonly Problem[] }[]
): () => readonly Problem[] {
  const all = [...parts, faults, reload, writes, { problems: () => logProblems(options) }]
  return () => [...steady, ...all.flatMap((part) => part.problems())]
}

function approvalNotifier({ options, telemetry }: StartDeps): ApprovalNotifier {
  return new ApprovalNotifier({ how: options.config.policy.notify, platform: process.platform, telemetry })
}

/** Gives the owner notice of each pending approval from now on. */
function startNotices({ options, unwind }: StartDeps, node: NodeCore, notifier: ApprovalNotifier): void {
  if (options.config.policy.notify === null) return
  const notify = (approval: ApprovalInfo): void => notifier.notify(approval)
  const tier = node.deps.membership.certificate().body.maxTier
  const owner = { kind: 'operator', name: 'operator', tier, sandboxId: null, scopes: ['read', 'admin'] } as const
  const stops = [onNewApproval(node, notify), onNewElsewhere(node, owner, notify)]
  unwind.add('notices', async () => {
    stops.forEach((stop) => stop())
    notifier.close()
  })
}

/** Lets each part bring its problems up to date. */
function lookers(...parts: readonly { look(): void | Promise<void> }[]): () => Promise<void> {
  return async () => {
    await Promise.all(parts.map(async (part) => await part.look()))
  }
}

function backupWith({ options: { home }, clock, audit, store, shared }: OpenHome, ledger: LedgerOnDisk, mesh: Mesh) {
  return async (request: BackupRequest): Promise<BackupInfo> => {
    await audit.flush()
    const createdAt = clock.now()
    const copyDocuments = (dir: string): Promise<boolean> => shared.copyTo(dir)
    return await writeBackup(
      { home, store, copyDocuments, ledger, state: mesh.state(), nodeId: mesh.nodeId, createdAt },
      request
    )
  }
}

function logStateOf(mesh: Mesh, marks: LogMarks): LogState {
  return {
    problems: () => [...marks.problems(), ...mesh.logProblems()],
    onChange: (listener) => {
      const stops = [marks.onChange(listener), mesh.log.onChange(listener)]
      return () => stops.forEach((stop) => stop())
    }
  }
}

type GivenNodeDeps =
  | 'agents'
  | 'audit'
  | 'compileSchema'
  | 'documents'
  | 'ledger'
  | 'logState'
  | 'lookForProblems'
  | 'policy'
  | 'problems'
  | 'reach'
  | 'store'

/** The inputs of buildNode, from which it derives the other dependencies. */
interface NodeMaking extends Pick<NodeDeps, GivenNodeDeps> {
  readonly mesh: Mesh
  readonly network: NodeRecord['network']
  readonly sockets: HomeNetwork['sockets']
  readonly startedAt: number
  readonly lastFault: LastFault | null
}

function buildNode(deps: StartDeps, { mesh, network, sockets, startedAt, lastFault, ...given }: NodeMaking): NodeCore {
  const { home, config } = deps.options
  const node = createNode({
    ...given,
    clock: deps.clock,
    ids: randomIds(),
    chance: Math.random,
    ...(lastFault === null ? {} : { lastFault }),
    sign: mesh.sign,
    verify,
    hash,
    secret: randomSecret,
    toAgentJson,
    telemetry: deps.telemetry,
    problems: () => [...given.problems(), ...mesh.problems(), ...given.logState.problems()],
    membership: mesh,
    links: mesh.links,
    givenAddresses: sockets.given,
    log: mesh.log,
    pairing: mesh.pairing,
    settings: { ...settingsOf(config), addresses: sockets.addresses },
    process: {
      pid: process.pid,
      home: home.home,
      network,
      version: VERSION,
      socket: home.socket,
      served: sockets.served,
      startedAt
    }
  })
  const reported = 'a package of the network failed, and the node goes on'
  deps.faults.onFault((name, reason) => node.events.add('package-failed', reported, { package: name, reason }))
  return node
}

function readCode(text: string): CodeNetwork {
  const { network, bootstrap, localPort } = readInviteCode(text)
  return { network, bootstrap, localPort }
}

/** The opened parts of a home before its mesh. */
interface OpenHome extends StartDeps {
  readonly fresh: FreshHome
  readonly store: Corestore
  readonly documents: NodeStore
  readonly shared: DocumentCores
  readonly audit: Audit
  readonly record: NodeRecord
  readonly stored: StoredRecord | null
  readonly state: MeshState | null
  readonly ledger: Ledger
}

interface OpenedMesh {
  readonly mesh: Mesh
  readonly logState: LogState
  readonly sockets: HomeNetwork['sockets']
  /** Call once the node is up: later errors do not count as a failed start. */
  onUp(): Promise<void>
  /** The network below it; `look` brings it up to date. */
  readonly reach: Pick<NetworkState, 'look'> & ReachSource
}

function skewListener({ documents, clock, telemetry }: OpenHome): NonNullable<MeshDeps['onClock']> {
  const record = skewRecorder(documents)
  return (skew) => {
    record(skew, clock.now()).catch((error: unknown) =>
      telemetry.log('warn', 'the skew of the clock could not be recorded', { reason: messageOf(error) })
    )
  }
}

async function openMesh(home: OpenHome): Promise<OpenedMesh> {
  const { options, clock, telemetry, unwind, record, documents, audit, state } = home
  const { serveBootstrap } = options.config.network
  const { network: kind, bootstrap, localPort } = record
  const { network, learn, sockets } = await openHomeNetwork(home)
  const own = serveBootstrap === null || bootstrap.includes(serveBootstrap) ? [] : [serveBootstrap]
  const care = await openCare(home, home)
  const meshParts: MeshDeps = {
    care,
    store: home.store,
    network,
    codeNetwork: {
      network: kind,
      bootstrap: kind === 'private' ? [...bootstrap, ...own] : [],
      localPort: kind === 'local' ? localPort : null
    },
    keyPair: await home.store.createKeyPair('a2a-node/node'),
    software: `a2a-node/${VERSION}`,
    maxLinks: options.config.network.maxPeers,
    clock,
    telemetry,
    onPassed: (peer, stream) => {
      home.shared.link(peer, stream)
      learn(peer, stream)
    },
    onClock: skewListener(home),
    onRefused: (refusal) => audit.append(refusal),
    writeFault: () => fullDisk(options.home.store, home.ledger)
  }
  // The admin of a join may know this key from now on.
  if (options.join !== null) home.fresh.keep()
  const mesh = await foundOrJoin(home, meshParts)
  unwind.add('mesh', () => mesh.close())
  await documents.write(NODE, state === null ? { ...record, epoch: record.epoch + 1 } : record)
  await documents.write(MESH, mesh.state())
  home.fresh.keep()
  keepMark(mesh, home)
  keepState(mesh, home)
  const logState = logStateOf(mesh, await openLogMarks(home, { mesh, store: home.store, documents }))
  return { mesh, logState, sockets, onUp: () => care.up(mesh.log.view()), reach: reachOf(network, mesh) }
}

function reachOf({ state, examine }: Network, { links }: MeshNode): OpenedMesh['reach'] {
  const aheadMs = (peer: NodeId): number | null => links.clocks().find((one) => one.peer === peer)?.aheadMs ?? null
  return {
    info: () => state.info(),
    look: () => state.look(),
    examine: async (peer) => ({ ...(await examine(peer)), clockAheadMs: aheadMs(peer) })
  }
}

/** Writes each new state of the mesh. */
function keepState(mesh: Mesh, { documents, telemetry }: OpenHome): void {
  mesh.onState((next) => {
    documents
      .write(MESH, next)
      .catch((error: unknown) =>
        telemetry.log('error', 'the mesh state could not be kept', { reason: messageOf(error) })
      )
  })
}

async function foundOrJoin({ options, record, stored, state, documents }: OpenHome, deps: MeshDeps): Promise<MeshNode> {
  const { name, epoch } = record
  if (state !== null) return await reopen({ options, documents }, deps, state)
  // An interrupted join leaves its cores in their own epoch and the rest of the home unchanged.
  await documents.write(NODE, { ...stored, epoch: epoch + 1 })
  if (options.join === null) return foundMesh(deps, { name, meshName: DEFAULT_MESH_NAME, epoch })
  options.onProgress?.('joining: looking for an admin of the mesh ...')
  const mesh = await joinMesh(deps, {
    code: options.join,
    name,
    epoch,
    timeoutMs: options.config.network.joinTimeoutMs
  })
  const trust = mesh.acceptsInviter ? 'mine' : 'guest'
  const kind = trust === 'mine' ? "as a machine of the inviter's" : 'as a guest'
  options.onProgress?.(`joined the mesh ${safeName(mesh.meshName, NODE_NAME)} ${kind}: ${TRUST_WORDS[trust]}`)
  return mesh
}

/** Opens the mesh of the home. Fails when its own core is shorter than recorded: such a core must never grow again. */
async function reopen(
  { options, documents }: Pick<OpenHome, 'options' | 'documents'>,
  deps: MeshDeps,
  state: MeshState
): Promise<MeshNode> {
  const { store } = options.home
  if (state.chain[0] !== undefined && state.chain[0].body.nodeKey !== keyToText(deps.keyPair.publicKey))
    throw rolledBack(store)
  const mesh = await reopenMesh(deps, state).catch((error: unknown) => Promise.reject(damageError(error, store)))
  const mark = coreMark(documents)
  if (mesh.ownLength() >= (await mark.read(mesh.log.coreKey))) return mesh
  await mesh.close()
  throw rolledBack(store)
}

function rolledBack(place: string): NodeError {
  return new NodeError('STORE_DAMAGED', `the store ${place} has lost data: it is damaged, or an older copy`)
}
