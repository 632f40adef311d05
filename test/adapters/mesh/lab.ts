import fs from 'node:fs/promises'
import Corestore from 'corestore'
import HyperDHT from 'hyperdht'
import type { DhtAddress } from 'hyperdht'
import createTestnet from 'hyperdht/testnet.js'
import type Hyperswarm from 'hyperswarm'
import type { KeyPair } from 'hyperswarm'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { foundMesh, joinMesh, reopenMesh } from '../../../src/adapters/mesh/network/mesh.js'
import type { MeshNode, MeshDeps } from '../../../src/adapters/mesh/network/mesh-node.js'
import { DialRecord } from '../../../src/adapters/mesh/network/dial-record.js'
import type { Network } from '../../../src/adapters/mesh/network/network.js'
import { HyperswarmTransport } from '../../../src/adapters/mesh/transport/hyperswarm-transport.js'
import { timely } from '../../../src/adapters/mesh/network/timely.js'
import type { Clock } from '../../../src/kit/clock.js'
import { keyToText } from '../../../src/kit/ids.js'
import type { NodeId } from '../../../src/kit/ids.js'
import { frameCost } from '../../../src/domain/channel/credit.js'
import { type CreditWindow, FIRST_WINDOW, moreCredit, takeFrame } from '../../../src/domain/channel/credit.js'
import type { MembershipView } from '../../../src/domain/membership/types.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import type { AuditEvent } from '../../../src/ports/audit.js'
import type { Link, LinkHandlers } from '../../../src/ports/mesh.js'
import { tempDir, type Teardown } from '../../support/tmp.js'
import { MemoryNet } from './transport/memory-transport.js'

/** What the links told, in order, and waits for more of it. */
export class LinkRecorder implements LinkHandlers {
  readonly opened: Link[] = []
  readonly closed: { readonly link: Link; readonly reason: string }[] = []
  /** Links that made room for others. */
  readonly rested: Link[] = []
  /** The link that it would do without. */
  spared: Link | null = null
  readonly frames: { readonly link: Link; readonly frame: Uint8Array }[] = []
  readonly #windows = new Map<Link, CreditWindow>()
  readonly #waiting = new Set<() => void>()

  onOpen(link: Link): void {
    this.opened.push(link)
    this.#tell()
  }

  onFrame(link: Link, frame: Uint8Array): void {
    this.frames.push({ link, frame })
    const window = takeFrame(this.#windows.get(link) ?? FIRST_WINDOW, frameCost(frame)) ?? FIRST_WINDOW
    const more = moreCredit(window, null)
    if (more !== window) link.grant(more.limit)
    this.#windows.set(link, more)
    this.#tell()
  }

  onCredit(): void {
    this.#tell()
  }

  onClose(link: Link, reason: string, isRest: boolean): void {
    this.closed.push({ link, reason })
    if (isRest) this.rested.push(link)
    this.#tell()
  }

  spare(): Link | null {
    return this.spared
  }

  /** Resolves when the condition holds; looked at after each event. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Resolves with the newest open link to a peer. */
  async link(peer: NodeId): Promise<Link> {
    const find = (): Link | undefined => this.opened.findLast((one) => one.peer === peer && !one.closed)
    await this.until(() => find() !== undefined)
    return find() as Link
  }

  #tell(): void {
    for (const look of [...this.#waiting]) look()
  }
}

/** A node of the lab: everything of the mesh adapter, nothing above it. */
export interface LabNode {
  readonly name: string
  readonly mesh: MeshNode
  readonly id: NodeId
  readonly seen: LinkRecorder
  readonly telemetry: MemoryTelemetry
  /** What it would put on record: streams that its gate refused, peers that broke the protocol. */
  readonly refused: AuditEvent[]
  readonly dht: HyperDHT
  /** The transport of its links. */
  readonly swarm: Hyperswarm
  readonly store: Corestore
  /** Says that this node serves a new bootstrap with empty records. */
  takeover(): void
  /** Begins to look for members. `want`: keep links to everybody in the view (default). */
  start(options?: { readonly want?: boolean }): Promise<void>
  close(): Promise<void>
}

/** Where nodes meet, and how they are made. */
export interface Lab {
  readonly bootstrap: readonly DhtAddress[]
  found(name: string, options?: NodeOptions): Promise<LabNode>
  join(name: string, code: string, options?: NodeOptions & { readonly timeoutMs?: number }): Promise<LabNode>
  /** Invites and joins, both started and linked. */
  member(name: string, by: LabNode, options?: { readonly tier?: Tier; readonly admin?: boolean }): Promise<LabNode>
  /** Opens the mesh of a closed node again; `bootstrap` moves it to another network. */
  reopen(node: LabNode, options?: NodeOptions): Promise<LabNode>
  /** A copy of a closed node's home, core and all, as no home of a backup is. */
  twin(node: LabNode): Promise<LabNode>
  /** The node in another, empty home: its key and its mesh, a core of its own, nothing of the log. */
  restore(node: LabNode): Promise<LabNode>
}

/** How a node of the lab differs from others. */
export interface NodeOptions {
  readonly clock?: Clock
  readonly bootstrap?: readonly DhtAddress[]
  readonly maxLinks?: number
  /** A peer passed the gate: its stream may carry more than the log. */
  readonly onPassed?: NonNullable<MeshDeps['onPassed']>
  /** How long its store may take to close, in milliseconds. Default: as long as it takes. */
  readonly storeCloseMs?: number
}

interface Home {
  readonly name: string
  readonly dir: string
  /** Of the store; absent: a new one. */
  readonly primaryKey?: Uint8Array
}

/** A DHT of three nodes on loopback, gone when the test ends. */
export async function loopbackDht(t: Teardown): Promise<readonly DhtAddress[]> {
  const testnet = await createTestnet(3)
  t.teardown(() => testnet.destroy(), { order: 1000 })
  return testnet.bootstrap
}

/** Nodes of one test on a loopback DHT of their own; or without a network, over streams in memory. */
export async function meshLab(t: Teardown, { isInMemory = false } = {}): Promise<Lab> {
  const bootstrap = isInMemory ? [] : await loopbackDht(t)
  const net = isInMemory ? new MemoryNet() : null
  // Neither memory nor the timers of a clock keep a process alive, as sockets do.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => clearInterval(alive), { order: 2000 })
  const homes = new Map<LabNode, Home>()
  const root = await tempDir(t)
  let epochs = 0

  async function open(
    home: Home,
    options: NodeOptions,
    make: (parts: MeshDeps) => Promise<MeshNode>
  ): Promise<LabNode> {
    const { primaryKey } = home
    const store = new Corestore(home.dir, primaryKey === undefined ? {} : { primaryKey, unsafe: true })
    const { network, takeover, swarm } = net === null ? labNetwork(options.bootstrap ?? bootstrap) : memoryNetwork(net)
    const telemetry = new MemoryTelemetry({ clock: systemClock(), level: null, format: 'text', write: () => {} })
    const refused: LabNode['refused'] = []
    let closing: Promise<void> | null = null
    let mesh: MeshNode | null = null
    const close = (): Promise<void> => {
      closing ??= (async () => {
        await mesh?.close()
        await network.close()
        const { storeCloseMs = null } = options
        await (storeCloseMs === null ? store.close() : timely(store.close(), systemClock(), storeCloseMs))
      })()
      return closing
    }
    t.teardown(close)
    try {
      mesh = await make({
        store,
        network,
        codeNetwork: {
          network: 'private',
          bootstrap: bootstrap.map(({ host, port }) => `${host}:${port}`),
          localPort: null
        },
        keyPair: await store.createKeyPair('a2a-node/node'),
        software: `lab/${home.name}`,
        clock: options.clock ?? systemClock(),
        telemetry,
        ...(options.maxLinks === undefined ? {} : { maxLinks: options.maxLinks }),
        ...(options.onPassed === undefined ? {} : { onPassed: options.onPassed }),
        onRefused: (refusal) => void refused.push(refusal)
      })
    } catch (error) {
      await close()
      throw error
    }
    const made = mesh
    const node: LabNode = {
      name: home.name,
      mesh: made,
      id: made.nodeId,
      seen: new LinkRecorder(),
      telemetry,
      refused,
      dht: network.dht,
      get swarm() {
        return swarm()
      },
      store,
      takeover,
      start: async ({ want = true } = {}) => {
        await made.links.start(node.seen)
        const wantAll = (view: MembershipView): void =>
          made.links.want([...view.members.keys()].filter((id) => id !== made.nodeId))
        if (!want) return
        made.log.onChange(wantAll)
        wantAll(made.log.view())
      },
      close
    }
    homes.set(node, { ...home, primaryKey: store.primaryKey })
    return node
  }

  const lab: Lab = {
    bootstrap,
    found: (name, options = {}) =>
      open({ name, dir: `${root}/${name}` }, options, (parts) => foundMesh(parts, { name, meshName: 'lab', epoch: 1 })),
    join: (name, code, { timeoutMs = 20_000, ...options } = {}) =>
      open({ name, dir: `${root}/${name}` }, options, (parts) =>
        joinMesh(parts, { code, name, epoch: ++epochs, timeoutMs })
      ),
    member: async (name, by, options = {}) => {
      const node = await lab.join(name, await inviteCode(by, options))
      await node.start()
      await node.seen.link(by.id)
      await untilView(node, (view) => view.members.has(node.id))
      return node
    },
    reopen: (node, options = {}) =>
      open(homes.get(node) as Home, options, (parts) => reopenMesh(parts, node.mesh.state())),
    twin: async (node) => {
      const { name, dir } = homes.get(node) as Home
      const home = { name, dir: `${dir}-twin` }
      await fs.cp(`${dir}/db`, `${home.dir}/db`, { recursive: true })
      return open(home, {}, (parts) => reopenMesh(parts, node.mesh.state()))
    },
    restore: (node) => {
      const epoch = 1000 + ++epochs
      const { name, primaryKey } = homes.get(node) as Home
      const home = { name, dir: `${root}/${name}-${epoch}`, ...(primaryKey === undefined ? {} : { primaryKey }) }
      return open(home, {}, (parts) => reopenMesh(parts, { ...node.mesh.state(), epoch, takesOver: true }))
    }
  }
  return lab
}

/** Makes an invite, brings it into the log and gives its code. */
export async function inviteCode(
  by: LabNode,
  {
    tier = 1,
    admin = false,
    uses = 1,
    ttlMs = 600_000,
    isShort = false
  }: {
    readonly tier?: Tier
    readonly admin?: boolean
    readonly uses?: number
    readonly ttlMs?: number
    readonly isShort?: boolean
  } = {}
): Promise<string> {
  const { terms, code, shortCode } = by.mesh.pairing.create({
    tier,
    admin,
    sandboxId: null,
    trust: 'mine',
    ttlMs,
    uses
  })
  await by.mesh.log.submit({ kind: 'invite', mesh: by.mesh.meshId, invite: terms })
  if (!isShort) return code
  await by.mesh.pairing.announced(terms.id, 5000)
  return shortCode ?? ''
}

/** Resolves when a node's view fits. */
export function untilView({ mesh: { log } }: LabNode, fits: (view: MembershipView) => boolean): Promise<void> {
  return new Promise((resolve) => {
    let stop: () => void = () => {}
    const look = (view: MembershipView): void => {
      if (!fits(view)) return
      stop()
      resolve()
    }
    stop = log.onChange(look)
    look(log.view())
  })
}

/** Closes the links of a node with others for good. */
export function keepApart(node: LabNode, others: readonly LabNode[]): void {
  const apart = new Set(others.map(({ id }) => id))
  // Asked for both directions; the option of that name would be the node's own.
  Reflect.set(node.swarm, '_handleFirewall', (key: Uint8Array) => apart.has(keyToText(key)))
  for (const link of node.mesh.links.list()) if (apart.has(link.peer)) link.close('kept apart')
}

/** A network over the test's DHT, and a way to say that its bootstrap is a new one. */
export function labNetwork(bootstrap: readonly DhtAddress[]): {
  network: Network
  takeover: () => void
  swarm: () => Hyperswarm
} {
  const dht = new HyperDHT({ bootstrap, host: '127.0.0.1', firewalled: false, connectionKeepAlive: 2000 })
  const listeners: (() => void)[] = []
  const transports: HyperswarmTransport[] = []
  return {
    network: {
      dht,
      openTransport: (keyPair) => {
        const transport = new HyperswarmTransport({ dht, keyPair })
        transports.push(transport)
        return transport
      },
      locate: () => {},
      via: () => [],
      cardOf: () => ({ tcp: [], websocket: [] }),
      faultOf: () => null,
      serving: () => false,
      dials: new DialRecord(),
      hasWebSockets: false,
      hasLan: false,
      examine: async () => ({ isAnnounced: null, udp: null, webSockets: [] }),
      state: {
        problems: () => [],
        info: () => ({ dht: null, nat: { kind: 'unknown', since: '' }, address: null }),
        isAnswering: () => true,
        look: async () => {},
        onChange: () => {}
      },
      onTakeover: (listener) => void listeners.push(listener),
      close: () => dht.destroy({ force: true })
    },
    takeover: () => {
      for (const listener of listeners) listener()
    },
    swarm: () => (transports.at(-1) as HyperswarmTransport).swarm
  }
}

/** A network inside this process. It has neither a DHT nor a swarm. */
function memoryNetwork(net: MemoryNet): ReturnType<typeof labNetwork> {
  const network = {
    openTransport: (keyPair: KeyPair) => net.open(keyPair),
    serving: () => false,
    state: { problems: () => [], isAnswering: () => true, look: async () => {}, onChange: () => {} },
    onTakeover: () => {},
    close: async () => {}
  }
  const none = (): never => {
    throw new Error('streams in memory have no swarm')
  }
  return { network: network as unknown as Network, takeover: () => {}, swarm: none }
}

/** A mesh of an owner, an admin and a member, all linked. */
export async function threeNodes(t: Teardown): Promise<{ lab: Lab; owner: LabNode; admin: LabNode; member: LabNode }> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const admin = await lab.member('admin', owner, { admin: true })
  const member = await lab.member('member', owner)
  const all = [owner, admin, member]
  await Promise.all(all.map((node) => untilView(node, (view) => view.members.size === 3)))
  await Promise.all(
    all.flatMap((node) => all.filter((other) => other !== node).map((other) => node.seen.link(other.id)))
  )
  return { lab, owner, admin, member }
}
