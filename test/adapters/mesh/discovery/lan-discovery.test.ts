import test from 'brittle'
import type { DnsPacket, DnsRecord } from 'multicast-dns'
import { LanDiscovery, MAX_RECORDS, MAX_TOPICS } from '../../../../src/adapters/mesh/discovery/lan-discovery.js'
import { lanTag, lanWindow } from '../../../../src/adapters/mesh/discovery/lan-tag.js'
import { ManualClock } from '../../../support/manual-clock.js'

type Listener = (packet: DnsPacket, from: { address: string }) => void

/** An mDNS socket without a network. */
class FakeSocket {
  readonly sent: (readonly DnsRecord[])[] = []
  questions = 0
  isDestroyed = false
  readonly #listeners = new Map<string, Listener>()

  on(event: string, listener: Listener): this {
    this.#listeners.set(event, listener)
    return this
  }

  query(): void {
    this.questions++
  }

  respond(all: readonly DnsRecord[]): void {
    this.sent.push(all)
  }

  destroy(): void {
    this.isDestroyed = true
  }

  breaks(reason: string): void {
    const onError = this.#listeners.get('error') as ((error: Error) => void) | undefined
    onError?.(new Error(reason))
  }

  hears(event: 'query' | 'response', packet: DnsPacket, address = '10.0.0.9'): void {
    this.#listeners.get(event)?.(packet, { address })
  }
}

const SERVICE = '_a2a-node._tcp.local'
const TOPIC = new Uint8Array(32).fill(1)
const QUESTION = { questions: [{ name: SERVICE, type: 'PTR' }] }

async function opened(port: number | null = 7422) {
  const [clock, socket] = [new ManualClock(), new FakeSocket()]
  const open = async () => [socket] as never
  const lan = new LanDiscovery({ clock, port, open })
  const found: string[] = []
  lan.onFound((address) => void found.push(address))
  lan.join(TOPIC)
  await new Promise(setImmediate)
  return { clock, socket, lan, found }
}

function records(tags: readonly string[], port: unknown = 7000, name = `x.${SERVICE}`): DnsPacket {
  return {
    answers: [
      { name, type: 'SRV', data: { port, target: 'x.local' } },
      { name, type: 'TXT', data: tags.map((one) => Buffer.from(`t=${one}`)) }
    ]
  }
}

test('a record of a sought topic is found by its tag of this hour and those beside it, at the address that sent it', async (t) => {
  const { clock, socket, found } = await opened()
  const hour = lanWindow(clock.now())
  for (const [at, window] of [hour - 2, hour - 1, hour, hour + 1, hour + 2].entries())
    socket.hears('response', records([lanTag(TOPIC, window)], 7000 + at), `10.0.0.${at}`)
  t.alike(found, ['10.0.0.1:7001', '10.0.0.2:7002', '10.0.0.3:7003'])
  socket.hears('response', records([lanTag(new Uint8Array(32), hour)]))
  for (const port of [0, 65_536, '7000', null]) socket.hears('response', records([lanTag(TOPIC, hour)], port))
  t.is(found.length, 3)
})

test('the own record has a tag and a name that change with the hour, and is sent once a second at most', async (t) => {
  const { clock, socket, found } = await opened()
  const [first] = socket.sent
  const text = JSON.stringify(first)
  t.ok(text.includes(`t=${lanTag(TOPIC, lanWindow(clock.now()))}`))
  socket.hears('response', { answers: first ?? [] })
  t.alike(found, [], 'it is known as the own one')
  for (let n = 0; n < 50; n++) socket.hears('query', QUESTION)
  clock.advance(1000)
  t.is(socket.sent.length, 2)
  clock.advance(3_600_000)
  socket.hears('query', QUESTION)
  const later = socket.sent.at(-1) ?? []
  const names = (all: readonly DnsRecord[]): unknown[] => all.map(({ name, data }) => [name, JSON.stringify(data)])
  for (const [at, [name, data]] of names(later).entries() as IterableIterator<[number, [string, string]]>) {
    const [before, content] = names(first ?? [])[at] as [string, string]
    t.ok(at === 0 ? data !== content : name !== before && data !== content)
  }
})

test('a liar costs four dials of its address and twenty of all, and only the first records of a packet are read', async (t) => {
  const { clock, socket, found } = await opened()
  const tag = lanTag(TOPIC, lanWindow(clock.now()))
  for (let port = 1; port <= 100; port++) socket.hears('response', records([tag], port))
  t.is(found.length, 4)
  clock.advance(60_000)
  for (let host = 0; host < 100; host++) socket.hears('response', records([tag]), `10.0.1.${host}`)
  t.is(found.length, 24)
  clock.advance(60_000)
  const { answers = [] } = records([tag])
  const noise = Array.from({ length: MAX_RECORDS }, () => ({ name: 'other.local', type: 'A' }))
  socket.hears('response', { answers: [...noise, ...answers] })
  socket.hears('response', records([...Array.from({ length: MAX_TOPICS }, () => 'x'), tag]))
  t.is(found.length, 24)
})

test('of many topics the newest are announced; without a port none is; after the end nothing is sent or found', async (t) => {
  const { clock, socket, lan, found } = await opened()
  for (let n = 0; n < 2 * MAX_TOPICS; n++) lan.join(new Uint8Array(32).fill(n + 2), { server: true, client: false })
  const tags = socket.sent.at(-1)?.find(({ type }) => type === 'TXT')?.data as string[]
  t.is(tags.length, MAX_TOPICS)
  t.is(tags[0], `t=${lanTag(TOPIC, lanWindow(clock.now()))}`, 'that of members stays')
  t.is(tags.at(-1), `t=${lanTag(new Uint8Array(32).fill(2 * MAX_TOPICS + 1), lanWindow(clock.now()))}`)
  t.is((await opened(null)).socket.sent.length, 0)
  lan.close()
  const sent = socket.sent.length
  socket.hears('query', QUESTION)
  socket.hears('response', records([lanTag(TOPIC, lanWindow(clock.now()))]))
  lan.join(TOPIC)
  t.alike([socket.sent.length, found.length, clock.pending, socket.isDestroyed], [sent, 0, 0, true])
})

test('a liar that sends many records keeps no record of another machine from being dialled', async (t) => {
  const { clock, socket, found } = await opened()
  const tag = lanTag(TOPIC, lanWindow(clock.now()))
  for (let port = 1; port <= 100; port++) socket.hears('response', records([tag], port), '10.0.0.66')
  socket.hears('response', records([tag]), '10.0.0.7')
  t.is(found.at(-1), '10.0.0.7:7000')
})

test('a machine without a network, or whose sockets break, states why, and looks again once it can', async (t) => {
  const clock = new ManualClock()
  let socket = new FakeSocket()
  let hasNetwork = false
  const open = async () => {
    if (!hasNetwork) throw new Error('no network')
    return [socket] as never
  }
  const lan = new LanDiscovery({ clock, port: 7422, open })
  lan.look()
  t.is(lan.fault, null, 'nothing was asked of it')
  lan.join(TOPIC)
  await new Promise(setImmediate)
  lan.look()
  await new Promise(setImmediate)
  t.alike([lan.fault, socket.sent.length], ['no network', 0])
  hasNetwork = true
  lan.look()
  await new Promise(setImmediate)
  t.alike([lan.fault, socket.sent.length, socket.questions], [null, 1, 1])
  const broken = socket
  broken.breaks('EADDRINUSE')
  t.alike([lan.fault, broken.isDestroyed, clock.pending], ['EADDRINUSE', true, 0])
  socket = new FakeSocket()
  lan.look()
  await new Promise(setImmediate)
  t.alike([lan.fault, broken.sent.length, socket.sent.length, socket.questions], [null, 1, 1, 1])
  lan.close()
})
