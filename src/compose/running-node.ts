import { type ErrorCode, NodeError } from '../kit/errors.js'
import type { NodeApi, NodeInfo, Principal, ReloadInfo } from '../ports/node-api.js'
import type { ContextStore } from '../ports/task-api.js'
import type { PushAdmin } from '../ports/push-api.js'
import type { OAuthAdmin } from '../ports/oauth-api.js'
import { adHocFinder } from './ad-hoc.js'
import { startControlServer } from '../adapters/control/server.js'
import { type Config, shownConfig } from '../config/settings.js'
import type { CardService } from '../adapters/a2a/cards/card-routes.js'
import type { HttpListener } from '../adapters/http/listener.js'
import type { HttpRoute } from '../adapters/http/route.js'
import type { Mesh } from '../adapters/mesh/network/mesh-node.js'
import type { NodeStore } from '../ports/storage.js'
import { createApi, nodeInfo } from '../node/api/node-api.js'
import type { ApiHost } from '../node/api/node-api.js'
import type { AttachedAgent, AttachOptions } from '../node/agents/in-process-agents.js'
import { createLayer } from '../node/sdk/layer.js'
import type { Layer } from '../node/sdk/layer.js'
import type { NodeCore } from '../node/node.js'
import type { A2AObservability } from '../node/observe/observability.js'
import type { StoredRecord } from './node-record.js'
import type { OpenedAgents } from './open-agents.js'
import type { OpenedGrpc } from './grpc/open-grpc.js'
import type { StartDeps } from './open-home.js'
import { openMcp } from './open-mcp.js'
import { loadOAuth, openHttp, publicBase } from './serve-http.js'

/** A node that runs in this process. */
export interface RunningNode {
  readonly info: NodeInfo
  apiFor(principal: Principal): NodeApi
  /**
   * Makes a part of this program an agent of the mesh, with a signed card like any other.
   * @throws NodeError INVALID_CARD
   */
  attach(options: AttachOptions): Promise<AttachedAgent>
  /** Events, sums and averages of its messages. */
  readonly observability: A2AObservability
  /** The operations of the A2A layer, for programs in this process. Always the same object. */
  readonly layer: Layer
  /** Resolves when the node has stopped, by close() or by itself (revoked, invite used up): null or the reason. */
  readonly stopped: Promise<NodeError | null>
  /**
   * Loads the config anew and applies the settings that can change while the node runs. Never rejects: with a bad
   * config the old one stays in force, and the report says so, as `status` does.
   */
  reload(load: () => Promise<Config>): Promise<ReloadInfo>
  /** Stops cleanly within `node.shutdownTimeoutMs`. Idempotent. */
  close(): Promise<void>
}

/** Name of the stored document of the node. */
export const NODE = 'node'
/** Name of the stored document of its mesh. */
export const MESH = 'mesh'
/** Codes of `expelled` after which the home keeps its mesh. */
const STAYS: ReadonlySet<ErrorCode> = new Set(['REVOKED', 'CONFLICT', 'STORE_DAMAGED', 'DISK_FULL'])

/** A node that is up but not served yet. */
export interface Served {
  readonly node: NodeCore
  readonly mesh: Mesh
  readonly backup: ApiHost['backup']
  readonly http: HttpListener | null
  readonly grpc: OpenedGrpc | null
  readonly agents: OpenedAgents
  readonly documents: NodeStore
}

/** Opens the control API, MCP and the A2A gateway of a node that is up. */
export async function serveNode(deps: StartDeps, served: Served): Promise<RunningNode> {
  const { node, mesh } = served
  const running = new ComposedNode(deps, served)
  served.agents.apis.serve(node, running)
  served.agents.mesh.serve(node)
  const mcp = openMcp(deps, {
    apiFor: (principal) => running.apiFor(principal),
    observability: node.observability,
    toolCalls: node.toolCalls,
    imported: served.agents.tools,
    chooser: served.agents.chooser,
    documents: served.documents
  })
  const server = await startControlServer({
    path: deps.options.home.socket,
    apiFor: (principal) => running.apiFor(principal),
    tier: () => mesh.certificate().body.maxTier,
    protocols: { mcp: mcp.protocol },
    onRefusal: ({ rule, reason }) => node.deps.audit.append({ kind: 'control', code: 'FORBIDDEN', rule, reason })
  })
  deps.unwind.add('control API', () => server.close())
  await serveA2A(deps, served, { running, mcp: mcp.route })
  void mesh.expelled.then((error) => running.expelled(error))
  return running
}

/** Opens the A2A gateway over HTTP, gRPC and the links to members, by the config. */
async function serveA2A(
  deps: StartDeps,
  { node, http, grpc }: Served,
  { running, mcp }: { readonly running: ComposedNode; readonly mcp: HttpRoute }
): Promise<void> {
  const { mesh: isOverMesh } = deps.options.config.a2a
  if (!isOverMesh) node.memberCalls.serve(null)
  if (http === null && grpc === null && !isOverMesh) {
    // No requests are made for members when no member is served.
    node.checkShare.payers = { memberBehind: () => null }
    return
  }
  const [{ openCards }, { openGateway, openLimit }, { openMeshBinding, openTasks }] = await Promise.all([
    import('./open-cards.js'),
    import('./open-gateway.js'),
    import('./open-tasks.js')
  ])
  const base = http === null ? null : publicBase(deps, http)
  const gateway = {
    ...deps,
    own: node.deps,
    base,
    grpc: grpc?.address ?? null,
    limit: openLimit(deps),
    apiFor: (principal: Principal) => running.apiFor(principal)
  }
  const oauth = http === null ? null : await loadOAuth(deps, node.deps, http)
  running.oauth = oauth?.admin ?? null
  const tasks = await openTasks(gateway, node, oauth?.clients ?? null)
  running.push = tasks.push
  running.contexts = tasks.contexts
  // Without HTTP the cards are made at the first request of a member.
  let made: CardService | null = null
  const cards = (): CardService => (made ??= openCards(gateway, oauth))
  if (isOverMesh) openMeshBinding(deps, { directory: node.directory, memberCalls: node.memberCalls, tasks, cards })
  const onUse = (): void => node.peers.usedHere()
  if (grpc !== null) grpc.open(gateway, { tasks, cards: cards(), tokens: node.tokens, oauth, onUse })
  if (http === null) return
  const served = openGateway(gateway, { tasks, cards: cards(), mcp, onUse })
  const routes = [...served, ...(oauth?.routes ?? [])]
  openHttp(deps, { listener: http, tokens: node.tokens, audit: node.deps.audit, oauth, routes })
}

/** The running node of this process. */
class ComposedNode implements RunningNode {
  readonly info: NodeInfo
  readonly observability: A2AObservability
  readonly stopped: Promise<NodeError | null>
  /** Set once the gateway is open. */
  push: PushAdmin | null = null
  /** Set once the gateway is open. */
  contexts: ContextStore | null = null
  /** Set once HTTP is served. */
  oauth: OAuthAdmin | null = null
  readonly #deps: StartDeps
  readonly #mesh: Mesh
  readonly #host: ApiHost
  #layer: Layer | null = null
  #closing: Promise<void> | null = null
  #reason: NodeError | null = null
  #tellStopped: (reason: NodeError | null) => void = () => {}

  constructor(deps: StartDeps, { node, mesh, backup, http, grpc, agents }: Served) {
    const { home } = deps.options
    this.#deps = deps
    this.#mesh = mesh
    this.observability = node.observability
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve
    })
    this.#host = {
      node,
      get config() {
        const { config } = deps.reload
        return { path: home.configFile, config: { ...shownConfig(config), given: [...config.given] } }
      },
      reload: () => deps.reload.last,
      tools: agents.tools,
      findRemote: adHocFinder({ node, ...agents }),
      backup,
      oauth: () => this.oauth,
      stop: () => void deps.clock.after(0, () => void this.close()),
      isStopping: () => this.#closing !== null,
      http: () => http?.boundUrl ?? null,
      grpc: grpc?.boundAddress ?? null,
      push: () => this.push,
      contexts: () => this.contexts
    }
    this.info = nodeInfo(this.#host)
  }

  apiFor(principal: Principal): NodeApi {
    return createApi(this.#host, principal)
  }

  get layer(): Layer {
    this.#layer ??= createLayer(this.#host.node)
    return this.#layer
  }

  attach(options: AttachOptions): Promise<AttachedAgent> {
    return this.#host.node.attach(options)
  }

  reload(load: () => Promise<Config>): Promise<ReloadInfo> {
    return this.#deps.reload.reload(load)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Stops the node when its mesh has ended, e.g. by its removal. */
  async expelled(error: NodeError): Promise<void> {
    this.#reason = error
    this.#deps.telemetry.log('error', 'this node stops', { code: error.code, reason: error.message })
    await this.#forget(error.code).catch(() => {})
    await this.close()
  }

  /**
   * Keeps the mesh state for {@link STAYS}, so that the next start knows of a removal. Else resets a home whose join
   * had not settled.
   */
  async #forget(code: ErrorCode): Promise<void> {
    const { store } = this.#host.node.deps
    if (STAYS.has(code)) return store.write(MESH, this.#mesh.state())
    const stored = await store.read<StoredRecord>(NODE)
    await store.remove(MESH)
    await store.write(NODE, { epoch: stored?.epoch ?? 1 })
  }

  async #close(): Promise<void> {
    const { clock, unwind, options, telemetry } = this.#deps
    const late = await unwind.runWithin(options.config.node.shutdownTimeoutMs, clock)
    if (late !== null) telemetry.log('warn', 'this node was not closed in time', { step: late })
    this.#tellStopped(this.#reason)
  }
}
