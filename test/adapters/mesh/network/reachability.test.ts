import test from 'brittle'
import type { DhtAddress } from 'hyperdht'
import { Reachability, type ReachabilityDeps } from '../../../../src/adapters/mesh/network/reachability.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** Fake DHT: each ping stays open until it is answered, or its time is over. */
class FakeDht {
  readonly bootstrapNodes: readonly DhtAddress[]
  readonly stats = { requests: { responses: 0, timeouts: 0 } }
  readonly pinged: string[] = []
  /** Addresses that answer. */
  readonly up = new Set<string>()
  /** The address of this node, as that of a host sees it; else 198.51.100.1:7. */
  readonly sees = new Map<string, DhtAddress>()
  readonly host: string | null = null
  readonly port = 0
  firewalled = true
  randomized = false

  constructor(...bootstrap: readonly string[]) {
    this.bootstrapNodes = bootstrap.map((text) => {
      const [host = '', port] = text.split(':')
      return { host, port: Number(port) }
    })
  }

  toArray(): DhtAddress[] {
    return []
  }

  ping({ host, port }: DhtAddress): Promise<{ to: DhtAddress }> {
    this.pinged.push(`${host}:${port}`)
    if (!this.up.has(host)) return new Promise(() => {})
    this.stats.requests.responses++
    return Promise.resolve({ to: this.sees.get(host) ?? { host: '198.51.100.1', port: 7 } })
  }
}

interface Scene {
  readonly dht: FakeDht
  readonly clock: ManualClock
  readonly network: Reachability
  readonly changes: (string | null)[]
  codes(): string[]
  /** Advances the clock in steps of a tenth of a second, so that each promise of a step settles. */
  pass(ms: number): Promise<void>
}

function scene(dht: FakeDht, deps: Partial<ReachabilityDeps> = {}): Scene {
  const clock = new ManualClock(Date.parse('2030-01-02T03:04:05.678Z'))
  const network = new Reachability({
    kind: 'private',
    isDeclared: false,
    dht,
    clock,
    addresses: () => ['10.0.0.9'],
    ...deps
  })
  const changes: (string | null)[] = []
  network.onChange((problem) => changes.push(problem?.code ?? null))
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(100)
      for (let turn = 0; turn < 8; turn++) await Promise.resolve()
    }
  }
  return { dht, clock, network, changes, codes: () => network.problems().map(({ code }) => code), pass }
}

test('a bootstrap list that nobody answers is named after 2 s, with the time of the last answer and a next step', async (t) => {
  const { network, pass, changes } = scene(new FakeDht('10.0.0.5:29737', '10.0.0.6:1'))
  await pass(1900)
  t.alike(network.problems(), [], 'an answer may still come')
  await pass(200)
  t.alike(network.problems(), [
    {
      code: 'BOOTSTRAP_OFFLINE',
      message:
        'no bootstrap node of this private network answers since 2030-01-02T03:04:05Z (10.0.0.5:29737, 10.0.0.6:1), so members that are not linked yet do not find each other: start a node that serves one',
      next: 'a2a-node start --network private --serve-bootstrap 10.0.0.5:29737   # on the machine 10.0.0.5'
    }
  ])
  t.alike(changes, ['BOOTSTRAP_OFFLINE'])
})

test('one answer of a list is enough', async (t) => {
  const dht = new FakeDht('10.0.0.5:1', '10.0.0.6:1')
  dht.up.add('10.0.0.6')
  const { pass, codes, changes } = scene(dht)
  await pass(20_000)
  t.alike([codes(), changes], [[], []])
})

test('a bootstrap node that ends is noticed, with the time of its last answer; its return ends the problem', async (t) => {
  const dht = new FakeDht('10.0.0.5:1')
  dht.up.add('10.0.0.5')
  const { network, pass, changes } = scene(dht)
  await pass(16_000)
  t.alike([network.problems(), changes], [[], []])
  dht.up.clear()
  await pass(17_100)
  t.is(network.problems()[0]?.message.includes('since 2030-01-02T03:04:20Z'), true, network.problems()[0]?.message)
  dht.up.add('10.0.0.5')
  await pass(5100)
  t.alike([network.problems(), changes], [[], ['BOOTSTRAP_OFFLINE', null]])
})

test('on the public network an answer of any node counts, and without one its names are reported', async (t) => {
  const dht = new FakeDht('88.99.3.86@node1.hyperdht.org:49737')
  const { network, pass, codes } = scene(dht, { kind: 'public' })
  dht.stats.requests.responses += 3
  await pass(2100)
  t.alike(codes(), [], 'another node answered while the bootstrap nodes were asked')
  const asked = dht.pinged.length
  dht.stats.requests.responses++
  await pass(15_100)
  t.is(dht.pinged.length, asked, 'its own traffic is enough, and nothing more is sent')
  await pass(17_100)
  const [problem] = network.problems()
  t.is(problem?.code, 'NETWORK_OFFLINE')
  t.ok(problem?.message.includes('(node1.hyperdht.org:49737)'), problem?.message)
  t.is(problem?.next, 'ping -c 3 88.99.3.86')
})

test('a private network does not count answers of others than its bootstrap nodes', async (t) => {
  const dht = new FakeDht('10.0.0.5:1')
  const { pass, codes } = scene(dht)
  dht.stats.requests.responses += 3
  await pass(2100)
  t.alike(codes(), ['BOOTSTRAP_OFFLINE'])
})

test('the problem of a machine without an address differs from that of lost packets', async (t) => {
  const { network, pass } = scene(new FakeDht('88.99.3.86@node1:1'), { kind: 'public', addresses: () => [] })
  await pass(2100)
  const [problem] = network.problems()
  t.ok(problem?.message.endsWith('this machine has no network address'), problem?.message)
  t.is(problem?.next, 'ip address')
})

test('a look within 5 s of an answer sends nothing, a later one asks again and ends in 2 s', async (t) => {
  const dht = new FakeDht('10.0.0.5:1')
  dht.up.add('10.0.0.5')
  const { network, pass, codes } = scene(dht)
  await pass(4000)
  await network.look()
  t.is(dht.pinged.length, 1)
  dht.up.clear()
  await pass(2000)
  let ended = 0
  const looks = [network.look(), network.look()].map(async (look) => await look.then(() => ended++))
  await pass(1900)
  t.alike([ended, codes()], [0, []])
  await pass(200)
  t.alike([ended, codes(), dht.pinged.length], [2, ['BOOTSTRAP_OFFLINE'], 2], 'two looks share one question')
  await Promise.all(looks)
})

test('the problem names a host name that is not resolved, which is looked up once at a time', async (t) => {
  let lookups = 0
  let fail: (reason: Error) => void = () => {}
  const resolve = (): Promise<string> => {
    lookups++
    return new Promise((_, reject) => (fail = reject))
  }
  const { network, pass } = scene(new FakeDht('boot.example:7'), { resolve })
  await pass(30_000)
  t.is(lookups, 1, 'a slow one is not repeated meanwhile')
  t.ok(network.problems()[0]?.message.includes('(boot.example:7 (its name is not resolved))'))
  fail(new Error('ENOTFOUND'))
  await pass(8000)
  t.is(lookups, 2)
})

test('a resolved host name is asked at its address', async (t) => {
  const dht = new FakeDht('boot.example:7')
  dht.up.add('10.0.0.7')
  const { pass, codes } = scene(dht, { resolve: async () => '10.0.0.7' })
  await pass(100)
  t.alike([dht.pinged, codes()], [['10.0.0.7:7'], []])
})

test('a private network without a bootstrap node is a problem at once, with the address of this machine to serve one', (t) => {
  for (const hasLan of [false, true]) {
    const { network } = scene(new FakeDht(), { hasLan })
    const [problem] = network.problems()
    t.is(problem?.code, 'BOOTSTRAP_MISSING')
    t.is(problem?.next, 'a2a-node stop && a2a-node start --serve-bootstrap 10.0.0.9:29737')
    t.is(problem?.message.includes('except on its LAN by mDNS'), hasLan, problem?.message)
  }
})

test('the network of one machine is never asked, nor is one that is closed', async (t) => {
  const local = scene(new FakeDht('127.0.0.1:1'), { kind: 'local' })
  const closed = scene(new FakeDht('10.0.0.5:1'))
  closed.network.close()
  await Promise.all([local.pass(30_000), closed.pass(30_000)])
  await Promise.all([local.network.look(), closed.network.look()])
  t.alike([local.dht.pinged, local.codes(), closed.dht.pinged.length, closed.changes], [[], [], 1, []])
})

/** A private network with three bootstrap nodes that answer. */
function answering(deps: Partial<ReachabilityDeps> = {}): Scene {
  const dht = new FakeDht('10.0.0.5:1', '10.0.0.6:1', '10.0.0.7:1')
  for (const { host } of dht.bootstrapNodes) dht.up.add(host)
  return scene(dht, deps)
}

test('the answers show whether the DHT answers, the NAT, the address and since when', async (t) => {
  const { network, dht, pass } = answering()
  const [start, first] = ['2030-01-02T03:04:05Z', { host: '198.51.100.1', port: 7 }]
  t.alike(network.info(), {
    dht: { state: 'unknown', since: start },
    nat: { kind: 'unknown', since: start },
    address: null
  })
  await pass(300)
  t.alike(network.info(), {
    dht: { state: 'answering', since: start },
    nat: { kind: 'consistent', since: start },
    address: '198.51.100.1:7'
  })
  dht.sees.set('10.0.0.6', { ...first, port: 8 })
  await pass(15_100)
  const { nat, address } = network.info()
  t.alike([nat.kind, nat.since > start, address], ['random', true, '198.51.100.1'])
  dht.up.clear()
  await pass(17_100)
  const lost = network.info()
  t.alike([lost.dht?.state, lost.nat.kind, lost.address], ['silent', 'unknown', null], 'nothing of before is repeated')
  dht.up.add('10.0.0.5')
  await pass(7100)
  const back = network.info()
  t.alike([back.dht?.state, back.nat.kind, back.address], ['answering', 'unknown', '198.51.100.1:7'], 'one answer')
  t.ok(back.dht !== null && lost.dht !== null && back.dht.since > lost.dht.since)
})

test('an answer of one node waits 300 ms for the others, which show the NAT', async (t) => {
  const { network, dht, pass } = answering()
  dht.up.delete('10.0.0.7')
  let isOver = false
  const look = network.look().then(() => (isOver = true))
  await pass(200)
  t.is(isOver, false)
  await pass(200)
  t.alike([isOver, network.info().nat.kind], [true, 'consistent'])
  await look
})

test('the nodes of the public DHT are asked for the address of this one each minute, also under other traffic', async (t) => {
  const { dht, pass } = answering({ kind: 'public' })
  await pass(400)
  for (let turn = 0; turn < 5; turn++) {
    dht.stats.requests.responses++
    await pass(15_000)
  }
  t.is(dht.pinged.length, 6)
})

test('no DHT is reported for one machine, nor for a private network without bootstrap nodes', (t) => {
  t.is(scene(new FakeDht('127.0.0.1:1'), { kind: 'local' }).network.info().dht, null)
  t.is(scene(new FakeDht()).network.info().dht, null)
})
