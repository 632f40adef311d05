import test from 'brittle'
import { type NatSigns, natOf } from '../../../../src/adapters/mesh/network/nat.js'

const SEEN = { host: '198.51.100.1', port: 7 }

function nat(signs: Partial<Omit<NatSigns, 'dht'>> & Partial<NatSigns['dht']>): string {
  const { seen = [], isDeclared = false, own = ['10.0.0.9'] } = signs
  const dht = { host: null, port: 0, randomized: false, firewalled: true, toArray: () => [], ...signs }
  const { kind, address } = natOf({ seen, dht, isDeclared, own })
  return `${kind} ${address}`
}

test('equal ports at two nodes are a consistent NAT, and none where strangers get through', (t) => {
  t.is(nat({ seen: [SEEN, SEEN] }), 'consistent 198.51.100.1:7')
  t.is(nat({ seen: [SEEN, SEEN], firewalled: false }), 'open 198.51.100.1:7')
})

test('a node that was declared reachable is open only at an address of its own', (t) => {
  const declared = { isDeclared: true, firewalled: false, seen: [SEEN, SEEN] }
  t.is(nat(declared), 'consistent 198.51.100.1:7')
  t.is(nat({ ...declared, own: [SEEN.host] }), 'open 198.51.100.1:7')
  const loopback = { host: '127.0.0.1', port: 7 }
  t.is(nat({ ...declared, seen: [loopback, loopback] }), 'open 127.0.0.1:7')
})

test('another port or address at another node is a random NAT, whose port is of no use', (t) => {
  t.is(nat({ seen: [SEEN, { ...SEEN, port: 8 }] }), 'random 198.51.100.1')
  t.is(nat({ seen: [SEEN, { ...SEEN, host: '198.51.100.2' }] }), 'random 198.51.100.1')
})

test('one answer shows no kind, unless the DHT met other nodes', (t) => {
  t.is(nat({ seen: [SEEN] }), 'unknown 198.51.100.1:7')
  t.is(nat({ seen: [SEEN], randomized: true }), 'random 198.51.100.1')
  const [host, port] = ['198.51.100.3', 9]
  t.is(nat({ host, port, toArray: () => [SEEN, SEEN] }), 'consistent 198.51.100.3:9')
  t.is(nat({ host, port, toArray: () => [SEEN] }), 'unknown 198.51.100.3:9')
  t.is(nat({ host, toArray: () => [SEEN, SEEN] }), 'unknown 198.51.100.3')
  t.is(nat({}), 'unknown null')
})
