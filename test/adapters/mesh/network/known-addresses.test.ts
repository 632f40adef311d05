import test from 'brittle'
import HyperDHT from 'hyperdht'
import {
  type AddressRecord,
  AddressedDht,
  KnownAddresses,
  MAX_ADDRESSES
} from '../../../../src/adapters/mesh/network/known-addresses.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'

const [A, B] = ['a', 'b'] as unknown as readonly [NodeId, NodeId]

test('an address of a link is saved once, with the port of this node, and is there after a restart', (t) => {
  const saved: AddressRecord[] = []
  const known = new KnownAddresses(null, (record) => saved.push(record))
  t.alike([known.of(A), known.port], [[], null])
  known.learn(A, { host: '10.0.0.5', port: 7 }, 49_737)
  known.learn(A, { host: '10.0.0.5', port: 7 }, 49_737)
  known.learn(A, { host: '10.0.0.5', port: 7 }, null)
  known.learn(B, { host: '10.0.0.6', port: 8 }, null)
  t.is(saved.length, 2, 'the same address is not saved again')
  const again = new KnownAddresses(JSON.parse(JSON.stringify(saved[1])), () => {})
  t.alike(
    [again.of(A), again.of(B), again.port],
    [[{ host: '10.0.0.5', port: 7 }], [{ host: '10.0.0.6', port: 8 }], 49_737]
  )
  known.learn(A, { host: '10.0.0.5', port: 7 }, 49_738)
  t.is(saved.at(-1)?.port, 49_738, 'another port of this node is saved, though no address of others changed')
})

test('beyond the bound a member that is linked again at the same address stays', (t) => {
  let last: AddressRecord = { port: null, peers: [] }
  const known = new KnownAddresses(null, (record) => (last = record))
  known.learn(A, { host: '10.0.0.5', port: 7 }, null)
  for (let i = 1; i < MAX_ADDRESSES; i++) known.learn(String(i), { host: '10.0.0.9', port: i }, null)
  known.learn(A, { host: '10.0.0.5', port: 7 }, null)
  known.learn(B, { host: '10.0.0.6', port: 8 }, null)
  t.alike([known.of(A).length, known.of('1').length, last.peers.length], [1, 0, MAX_ADDRESSES])
})

test('a new address takes the place of the former, and beyond the bound the oldest member is dropped', (t) => {
  let last: AddressRecord = { port: null, peers: [] }
  const known = new KnownAddresses(null, (record) => (last = record))
  known.learn(A, { host: '10.0.0.5', port: 7 }, null)
  known.learn(B, { host: '10.0.0.6', port: 8 }, null)
  known.learn(A, { host: '10.0.0.7', port: 9 }, null)
  t.alike(last.peers, [
    [B, '10.0.0.6', 8],
    [A, '10.0.0.7', 9]
  ])
  for (let i = 0; i < MAX_ADDRESSES; i++) known.learn(String(i), { host: '10.0.0.9', port: 1 + i }, null)
  t.is(last.peers.length, MAX_ADDRESSES)
  t.alike(known.of(A), [])
})

test('an unusable address is not learned, and a damaged record is read as far as it can be', (t) => {
  let saves = 0
  const known = new KnownAddresses(null, () => saves++)
  for (const host of ['', '::1', 'boot.example', '10.0.0.256']) known.learn(A, { host, port: 7 }, null)
  for (const port of [0, -1, 65_536, 1.5]) known.learn(A, { host: '10.0.0.5', port }, null)
  t.is(saves, 0)
  for (const bad of [undefined, 7, [], { peers: 7 }, { port: 'x', peers: [7, [], ['a', 'x', 1], ['a', '1.1.1.1', 0]] }])
    t.alike([new KnownAddresses(bad, () => {}).of(A), new KnownAddresses(bad, () => {}).port], [[], null])
  const mixed = { port: 70_000, peers: [[7], ['a', '10.0.0.5', 7]] }
  t.alike(new KnownAddresses(mixed, () => {}).of(A), [{ host: '10.0.0.5', port: 7 }])
})

test('a peer is dialled at its known address without any other node of the DHT', { timeout: 15_000 }, async (t) => {
  const options = { bootstrap: [], host: '127.0.0.1', firewalled: false }
  const keyPair = HyperDHT.keyPair()
  const served = new HyperDHT(options)
  t.teardown(() => served.destroy({ force: true }))
  const server = served.createServer({}, (stream) => stream.on('error', () => {}))
  // Without other nodes announcing never ends.
  void server.listen(keyPair).catch(() => {})
  await served.bind()
  const port = served.localAddress()?.port ?? 0
  const asked: NodeId[] = []
  const dht = new AddressedDht(options, (peer) => {
    asked.push(peer)
    return [{ host: '127.0.0.1', port }]
  })
  t.teardown(() => dht.destroy({ force: true }))
  const stream = dht.connect(keyPair.publicKey)
  stream.on('error', () => {})
  t.ok(await stream.opened)
  t.alike(asked, [keyToText(keyPair.publicKey)])
  const closed = new Promise<void>((resolve) => stream.once('close', resolve))
  stream.destroy()
  await closed
  await server.close()
})
