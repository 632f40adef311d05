import { randomBytes } from 'node:crypto'
import type { DnsPacket, DnsRecord, MulticastDns } from 'multicast-dns'
import { type Backoff, backoffMs } from '../../../kit/backoff.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { tcpAddressText } from '../../../kit/net/tcp-address.js'
import { RateTable } from '../../../kit/rate.js'
import { lanTag, lanWindow } from './lan-tag.js'

/** The service of DNS-SD. */
const SERVICE = '_a2a-node._tcp.local'
/** Records of one packet that are looked at, at most. */
export const MAX_RECORDS = 64
/** Topics that are announced, and topics that are looked for, at most; the oldest go, but never the one of members. */
export const MAX_TOPICS = 16
/** Addresses of one machine, and of all, that are dialled. */
const DIALS_PER_HOST = { perSecond: 0.5, burst: 4 }
const DIALS_IN_ALL = { perSecond: 5, burst: 20 }
/** Machines that are counted apart, at most. */
const MAX_HOSTS = 256
/** Milliseconds between two packets of one kind, at least. */
const PACKET_MS = 1000
/** Waits between two questions. */
const WAITS: Backoff = { baseMs: 1000, maxMs: 60_000 }
/** Seconds for which others may keep a record. */
const TTL_SECONDS = 120

/** Finds addresses at which nodes of a topic may be. */
export type Discovery = Pick<LanDiscovery, 'fault' | 'onFound' | 'join' | 'look' | 'close'>

/** Dependencies of {@link LanDiscovery}. */
export interface LanDiscoveryDeps {
  readonly clock: Clock
  /** Port at which this node takes TCP; null: it only looks for others. */
  readonly port: number | null
  /** Opens a socket on each interface. @throws Error when there is none */
  open(): Promise<readonly Pick<MulticastDns, 'on' | 'query' | 'respond' | 'destroy'>[]>
}

/**
 * Finds nodes of one LAN by mDNS. A record has a port and tags: each is the hash of a topic and the hour, so only
 * members and holders of an invite recognise it, and it names nobody for longer than an hour.
 */
export class LanDiscovery {
  readonly #deps: LanDiscoveryDeps
  readonly #announced = new Map<string, Uint8Array>()
  readonly #sought = new Map<string, Uint8Array>()
  readonly #perHost: RateTable
  readonly #inAll: RateTable
  /** The key of the topic of members. */
  #members: string | null = null
  #sockets: Awaited<ReturnType<LanDiscoveryDeps['open']>> | null = null
  #onFound: (address: string) => void = () => {}
  #isOpening = false
  #fault: string | null = null
  #isClosed = false
  #asks = 0
  #askTimer: Timer | null = null
  #answerTimer: Timer | null = null
  #askedAt = Number.NEGATIVE_INFINITY
  #answeredAt = Number.NEGATIVE_INFINITY
  /** Name of the record, for the present hour. */
  #instance = { window: -1, name: '-' }
  #wanted: { readonly window: number; readonly tags: ReadonlySet<string> } = { window: -1, tags: new Set() }

  constructor(deps: LanDiscoveryDeps) {
    this.#deps = deps
    this.#perHost = new RateTable(DIALS_PER_HOST, deps.clock, MAX_HOSTS)
    this.#inAll = new RateTable(DIALS_IN_ALL, deps.clock)
  }

  /** Why it does not work now; null: it does, or was not asked to. */
  get fault(): string | null {
    return this.#fault
  }

  /** The one handler of addresses (`host:port`) at which nodes of a sought topic may be. */
  onFound(handler: (address: string) => void): void {
    this.#onFound = handler
  }

  /** Announces this node at a topic (`server`), and looks for others there (`client`); default both, as members do. */
  join(topic: Uint8Array, mode: { readonly server?: boolean; readonly client?: boolean } = {}): void {
    const { server = true, client = true } = mode
    if (this.#isClosed) return
    if (server && client) this.#members = keyOf(topic)
    if (server) keepNewest(this.#announced, topic, this.#members)
    if (client) keepNewest(this.#sought, topic, this.#members)
    this.#wanted = { window: -1, tags: new Set() }
    this.#asks = 0
    if (this.#sockets !== null) this.#now()
    else void this.#open()
  }

  /** Asks again now, once a second at most; opens what could not be opened before, or broke. */
  look(): void {
    if (this.#sockets === null && this.#fault !== null) void this.#open()
    if (this.#sockets !== null && this.#deps.clock.monotonic() - this.#askedAt >= PACKET_MS) this.#ask()
  }

  /** Ends it: nothing is sent or found any more. */
  close(): void {
    this.#isClosed = true
    this.#deps.clock.clear(this.#askTimer)
    this.#deps.clock.clear(this.#answerTimer)
    for (const one of this.#sockets ?? []) one.destroy()
  }

  async #open(): Promise<void> {
    if (this.#isOpening || this.#isClosed) return
    this.#isOpening = true
    try {
      const sockets = await this.#deps.open()
      for (const one of sockets) {
        one.on('error', (error) => this.#broke(error))
        one.on('warning', () => {})
        one.on('query', (packet) => this.#asked(packet))
        one.on('response', (packet, { address }) => this.#answered(packet, address))
      }
      this.#sockets = sockets
      this.#fault = null
      if (this.#isClosed) this.close()
      else this.#now()
    } catch (error) {
      this.#broke(error)
    }
    this.#isOpening = false
  }

  /** Its sockets are of no more use; the next look opens others. */
  #broke(error: unknown): void {
    this.#fault = messageOf(error)
    this.#deps.clock.clear(this.#askTimer)
    for (const one of this.#sockets ?? []) one.destroy()
    this.#sockets = null
  }

  #now(): void {
    this.#answer()
    this.#ask()
  }

  #ask(): void {
    const { clock } = this.#deps
    clock.clear(this.#askTimer)
    this.#askTimer = clock.after(backoffMs(WAITS, this.#asks++), () => this.#ask())
    this.#askedAt = clock.monotonic()
    if (this.#sought.size > 0) for (const one of this.#sockets ?? []) one.query([{ name: SERVICE, type: 'PTR' }])
  }

  #asked({ questions = [] }: DnsPacket): void {
    if (this.#isClosed || !questions.slice(0, MAX_RECORDS).some(({ name }) => name === SERVICE)) return
    const { clock } = this.#deps
    const waitMs = this.#answeredAt + PACKET_MS - clock.monotonic()
    if (waitMs <= 0) return this.#answer()
    this.#answerTimer ??= clock.after(waitMs, () => this.#answer())
  }

  #answer(): void {
    const { clock, port } = this.#deps
    clock.clear(this.#answerTimer)
    this.#answerTimer = null
    if (port === null || this.#announced.size === 0) return
    this.#answeredAt = clock.monotonic()
    const window = lanWindow(clock.now())
    if (window !== this.#instance.window) this.#instance = { window, name: randomBytes(8).toString('hex') }
    const name = `${this.#instance.name}.${SERVICE}`
    const tags = [...this.#announced.values()].map((topic) => `t=${lanTag(topic, window)}`)
    const records: DnsRecord[] = [
      { name: SERVICE, type: 'PTR', ttl: TTL_SECONDS, data: name },
      { name, type: 'SRV', ttl: TTL_SECONDS, data: { port, target: `${this.#instance.name}.local` } },
      { name, type: 'TXT', ttl: TTL_SECONDS, data: tags }
    ]
    for (const one of this.#sockets ?? []) one.respond(records)
  }

  #answered({ answers = [], additionals = [] }: DnsPacket, host: string): void {
    if (this.#isClosed) return
    const records = [...answers, ...additionals]
      .slice(0, MAX_RECORDS)
      .filter(({ name }) => name.endsWith(`.${SERVICE}`) && !name.startsWith(this.#instance.name))
    for (const { name, data } of records.filter(({ type }) => type === 'TXT')) {
      const port = portOf(records.find((one) => one.type === 'SRV' && one.name === name)?.data)
      if (port === null || !this.#isWanted(data) || !this.#perHost.take(host) || !this.#inAll.take('')) continue
      this.#onFound(tcpAddressText({ host, port }))
    }
  }

  #isWanted(data: unknown): boolean {
    const window = lanWindow(this.#deps.clock.now())
    if (window !== this.#wanted.window) {
      // The clock of the other machine may be up to an hour off.
      const windows = [window - 1, window, window + 1]
      const tags = [...this.#sought.values()].flatMap((topic) => windows.map((one) => `t=${lanTag(topic, one)}`))
      this.#wanted = { window, tags: new Set(tags) }
    }
    return Array.isArray(data) && data.slice(0, MAX_TOPICS).some((one) => this.#wanted.tags.has(String(one)))
  }
}

function keepNewest(topics: Map<string, Uint8Array>, topic: Uint8Array, kept: string | null): void {
  const key = keyOf(topic)
  topics.delete(key)
  topics.set(key, topic)
  for (const oldest of topics.keys()) {
    if (topics.size <= MAX_TOPICS) break
    if (oldest !== kept) topics.delete(oldest)
  }
}

function keyOf(topic: Uint8Array): string {
  return Buffer.from(topic).toString('hex')
}

function portOf(data: unknown): number | null {
  const { port } = (data ?? {}) as { readonly port?: unknown }
  return Number.isSafeInteger(port) && Number(port) > 0 && Number(port) < 65_536 ? Number(port) : null
}
