import dns from 'node:dns/promises'
import net from 'node:net'
import os from 'node:os'
import type HyperDHT from 'hyperdht'
import type { DhtAddress } from 'hyperdht'
import type { Clock, Timer } from '../../../kit/clock.js'
import type { ErrorCode } from '../../../kit/errors.js'
import type { ReachInfo } from '../../../ports/network/reach.js'
import type { Problem } from '../../../ports/node-api.js'
import { type Nat, natOf, type NatSigns } from './nat.js'

/** How long all nodes together may take to answer, in milliseconds: each is asked twice in it. */
const ANSWER_MS = 2000
/** Milliseconds between two questions while nothing answers, and the age at which a look asks again. */
const FRESH_MS = 5000
/** The same while something answers. */
const CHECK_MS = 15_000
/** How long others may take to answer after the first one, in milliseconds: the NAT shows by several answers. */
const OTHERS_MS = 300
/** Age of the last answers at which they are asked again although the DHT has other traffic, in milliseconds. */
const NAT_MS = 60_000
/** Port in suggested commands. */
const BOOTSTRAP_PORT = 29_737

/** Dependencies of {@link Reachability}. */
export interface ReachabilityDeps {
  readonly kind: 'public' | 'private' | 'local'
  readonly dht: Pick<HyperDHT, 'ping' | 'bootstrapNodes' | 'stats'> & NatSigns['dht']
  readonly clock: Clock
  /** See {@link NatSigns}. */
  readonly isDeclared: boolean
  /** Do members reach each other by WebSocket? Then a private network needs no bootstrap node. */
  readonly hasWebSockets?: boolean
  /** Do nodes of one LAN find each other without a DHT? */
  readonly hasLan?: boolean
  /** IPv4 addresses of this machine except loopback. Default: those of its interfaces. */
  readonly addresses?: () => readonly string[]
  /** The IPv4 address of a host name. Default: as the system resolves it. */
  readonly resolve?: (host: string) => Promise<string>
}

/** A problem of the network. Its codes are also those of a join that fails by it. */
export interface NetworkProblem extends Problem {
  readonly code: Extract<
    ErrorCode,
    'NETWORK_OFFLINE' | 'BOOTSTRAP_OFFLINE' | 'BOOTSTRAP_MISSING' | 'WEBSOCKET_OFFLINE' | 'LAN_OFFLINE'
  >
}

/** The state of the network below a node, for `status` and for the error of a join. */
export interface NetworkState {
  /** Why other nodes are not found; empty when they may be. */
  problems(): readonly NetworkProblem[]
  /** The state of the DHT, and the NAT by its answers; as old as {@link NetworkState.problems}. */
  info(): ReachInfo
  /** Did something answer the last question? False before the first answer. */
  isAnswering(): boolean
  /** Resolves with {@link NetworkState.problems} at most 5 s old, after 2 s at the latest. Never rejects. */
  look(): Promise<void>
  /** Calls the listener with each new problem, and with null when it is over. */
  onChange(listener: (problem: NetworkProblem | null) => void): void
}

/**
 * Asks the bootstrap nodes whether they answer, since the DHT itself reports success without any answer. On the public
 * network an answer of any other DHT node counts as well; members of a private one know no other way to each other.
 */
export class Reachability implements NetworkState {
  readonly #deps: ReachabilityDeps
  readonly #listeners: ((problem: NetworkProblem | null) => void)[] = []
  readonly #lookups = new Map<string, Promise<string | null>>()
  /** Host names that were not resolved. */
  readonly #unresolved = new Set<string>()
  #answeredAt: number
  #isAnswering = false
  /** When `#isAnswering` changed last. */
  #since: number
  /** The address of this node, by the host of each node that answered last. */
  #seen: ReadonlyMap<string, DhtAddress> = new Map()
  #nat: Nat & { readonly since: number }
  #responses = 0
  #problem: NetworkProblem | null = null
  #asking: Promise<void> | null = null
  #askedAt = Number.NEGATIVE_INFINITY
  #timer: Timer | null = null
  #isClosed = false

  constructor(deps: ReachabilityDeps) {
    this.#deps = deps
    this.#answeredAt = deps.clock.now()
    this.#since = this.#answeredAt
    this.#nat = { kind: 'unknown', address: null, since: this.#answeredAt }
    if (this.#isWatched) void this.look()
  }

  problems(): readonly NetworkProblem[] {
    const { kind, dht, hasWebSockets = false } = this.#deps
    if (kind === 'private' && dht.bootstrapNodes.length === 0 && !hasWebSockets) return [this.#missing()]
    return this.#problem === null ? [] : [this.#problem]
  }

  info(): ReachInfo {
    const state = this.#isAnswering ? 'answering' : this.#problem === null ? 'unknown' : 'silent'
    const { kind, address, since } = this.#lookAtNat()
    return {
      dht: this.#isWatched ? { state, since: iso(state === 'silent' ? this.#answeredAt : this.#since) } : null,
      nat: { kind, since: iso(since) },
      address
    }
  }

  isAnswering(): boolean {
    return this.#deps.kind === 'local' || this.#isAnswering
  }

  async look(): Promise<void> {
    const { clock } = this.#deps
    if (!this.#isWatched || this.#isClosed) return
    if (this.#asking === null && clock.monotonic() - this.#askedAt >= FRESH_MS)
      this.#asking = this.#ask().finally(() => {
        this.#asking = null
      })
    await this.#asking
  }

  onChange(listener: (problem: NetworkProblem | null) => void): void {
    this.#listeners.push(listener)
  }

  /** Stops asking. */
  close(): void {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
  }

  /** A process of this machine serves the bootstrap node of `local`. */
  get #isWatched(): boolean {
    return this.#deps.kind !== 'local' && this.#deps.dht.bootstrapNodes.length > 0
  }

  async #ask(): Promise<void> {
    const { clock, dht } = this.#deps
    clock.clear(this.#timer)
    this.#hasTraffic()
    const seen = new Map<string, DhtAddress>()
    const isAnswered = await this.#isAnswered(dht.bootstrapNodes, seen)
    if (this.#isClosed) return
    // Later answers still come in.
    this.#seen = seen
    this.#askedAt = clock.monotonic()
    const hasTraffic = this.#hasTraffic()
    if (isAnswered || hasTraffic) this.#answered()
    else this.#silent()
    this.#next()
  }

  #next(): void {
    const { clock } = this.#deps
    this.#timer = clock.after(this.#problem === null ? CHECK_MS : FRESH_MS, () => {
      // The traffic of the DHT itself may show that it answers.
      if (!this.#hasTraffic() || clock.monotonic() - this.#askedAt >= NAT_MS) return void this.look()
      this.#answered()
      this.#next()
    })
  }

  /** Did any node of the public DHT answer since the last call? */
  #hasTraffic(): boolean {
    const { kind, dht } = this.#deps
    const before = this.#responses
    this.#responses = dht.stats.requests.responses
    return kind === 'public' && this.#responses > before
  }

  /** `seen`: takes the address of this node as each of the nodes sees it. */
  #isAnswered(nodes: readonly DhtAddress[], seen: Map<string, DhtAddress>): Promise<boolean> {
    const { clock } = this.#deps
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clear(timer)
        resolve(isAnswered)
      }
      let timer = clock.after(ANSWER_MS, end)
      let isAnswered = false
      let left = nodes.length
      const ended = (answers: boolean): void => {
        left--
        if (answers && !isAnswered) {
          isAnswered = true
          clock.clear(timer)
          timer = clock.after(OTHERS_MS, end)
        }
        if (left === 0) end()
      }
      for (const node of nodes) void this.#answers(node, seen).then(ended)
    })
  }

  async #answers({ host, port }: DhtAddress, seen: Map<string, DhtAddress>): Promise<boolean> {
    const address = await this.#addressOf(host)
    if (address === null) return false
    return await this.#deps.dht.ping({ host: address, port }).then(
      ({ to }) => {
        seen.set(`${address}:${port}`, to)
        return true
      },
      () => false
    )
  }

  /** The list of the DHT has a known address before a name: `88.99.3.86@node1.hyperdht.org`. */
  #addressOf(host: string): Promise<string | null> {
    const [address = host] = host.split('@')
    if (net.isIPv4(address)) return Promise.resolve(address)
    const { resolve = lookup } = this.#deps
    // A name may take longer than a question; a second lookup of it would only occupy another thread.
    const known = this.#lookups.get(host)
    if (known !== undefined) return known
    this.#unresolved.add(host)
    const found = resolve(host)
      .then(
        (resolved) => {
          this.#unresolved.delete(host)
          return resolved
        },
        () => null
      )
      .finally(() => this.#lookups.delete(host))
    this.#lookups.set(host, found)
    return found
  }

  #answered(): void {
    this.#answeredAt = this.#deps.clock.now()
    if (!this.#isAnswering) this.#since = this.#answeredAt
    this.#isAnswering = true
    this.#lookAtNat()
    if (this.#problem === null) return
    this.#problem = null
    this.#tell()
  }

  #silent(): void {
    const isNew = this.#problem === null
    this.#isAnswering = false
    this.#problem = this.#deps.kind === 'public' ? this.#offline() : this.#silentBootstrap()
    if (isNew) this.#tell()
  }

  /** Without an answer nothing of an earlier network is reported. */
  #lookAtNat(): Nat & { readonly since: number } {
    const { dht, clock, isDeclared } = this.#deps
    const seen = [...this.#seen.values()]
    const nat: Nat = this.#isAnswering
      ? natOf({ seen, dht, isDeclared, own: this.#ownAddresses() })
      : { kind: 'unknown', address: null }
    this.#nat = { ...nat, since: nat.kind === this.#nat.kind ? this.#nat.since : clock.now() }
    return this.#nat
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.#problem)
  }

  #silentSince(): string {
    return `since ${iso(this.#answeredAt)}`
  }

  #butLan(): string {
    return this.#deps.hasLan === true ? ', except on its LAN by mDNS' : ''
  }

  #offline(): NetworkProblem {
    const names = this.#deps.dht.bootstrapNodes.map(({ host, port }) => `${host.split('@').at(-1)}:${port}`)
    const isAlone = this.#ownAddresses().length === 0
    const cause = isAlone
      ? 'this machine has no network address'
      : 'connect this machine to the internet, and let its UDP packets out'
    return {
      code: 'NETWORK_OFFLINE',
      message: `no node of the public DHT answers ${this.#silentSince()} (${names.join(', ')}), so other machines do not find this one${this.#butLan()}: ${cause}`,
      next: isAlone ? 'ip address' : `ping -c 3 ${this.#deps.dht.bootstrapNodes[0]?.host.split('@')[0]}`
    }
  }

  #silentBootstrap(): NetworkProblem {
    const nodes = this.#deps.dht.bootstrapNodes
    const names = nodes.map(
      ({ host, port }) => `${host}:${port}${this.#unresolved.has(host) ? ' (its name is not resolved)' : ''}`
    )
    const [{ host, port } = { host: '', port: 0 }] = nodes
    return {
      code: 'BOOTSTRAP_OFFLINE',
      message: `no bootstrap node of this private network answers ${this.#silentSince()} (${names.join(', ')}), so members that are not linked yet do not find each other: start a node that serves one`,
      next: `a2a-node start --network private --serve-bootstrap ${host}:${port}   # on the machine ${host}`
    }
  }

  #missing(): NetworkProblem {
    const [address = '<address of this machine>'] = this.#ownAddresses()
    return {
      code: 'BOOTSTRAP_MISSING',
      message: `this private network has no bootstrap node, so no other node finds this one${this.#butLan()}: serve one here, then make invites anew`,
      next: `a2a-node stop && a2a-node start --serve-bootstrap ${address}:${BOOTSTRAP_PORT}`
    }
  }

  #ownAddresses(): readonly string[] {
    return (this.#deps.addresses ?? machineAddresses)()
  }
}

/** Addresses of this machine that other machines may reach. */
export function machineAddresses(): readonly string[] {
  return Object.values(os.networkInterfaces())
    .flat()
    .flatMap((one) => (one !== undefined && !one.internal && one.family === 'IPv4' ? [one.address] : []))
}

/** ISO time in seconds. */
function iso(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
}

async function lookup(host: string): Promise<string> {
  return (await dns.lookup(host, { family: 4 })).address
}
