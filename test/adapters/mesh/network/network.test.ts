import dgram from 'node:dgram'
import test from 'brittle'
import type { Assert } from 'brittle'
import HyperDHT from 'hyperdht'
import { type Network, type NetworkOptions, openNetwork } from '../../../../src/adapters/mesh/network/network.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { failsWith } from '../../../support/fails.js'
import { freePort } from '../../../support/nodes.js'

async function open(t: Assert, options: Partial<NetworkOptions>): Promise<Network> {
  const network = await openNetwork(
    { kind: 'local', bootstrap: [], serveBootstrap: null, behindNat: false, localPort: 1, ...options },
    systemClock()
  )
  t.teardown(() => network.close())
  return network
}

/** Holds a UDP port, as another program would. */
async function takenPort(t: Assert): Promise<number> {
  const socket = dgram.createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => socket.close(() => resolve())))
  return socket.address().port
}

test('local: the first process serves the bootstrap, the second takes it over when the first ends', async (t) => {
  const localPort = await freePort()
  const first = await open(t, { localPort })
  const second = await open(t, { localPort })
  t.is(first.serving(), true)
  t.is(second.serving(), false)
  const takeover = new Promise<void>((resolve) => second.onTakeover(resolve))
  await first.close()
  await takeover
  t.is(second.serving(), true)
  const third = await open(t, { localPort })
  await third.dht.fullyBootstrapped()
  t.ok(third.dht.toArray().length > 0, 'and serves newcomers')
})

test('local: nodes reach each other through the embedded bootstrap, on loopback alone', async (t) => {
  const localPort = await freePort()
  const [a, b] = [await open(t, { localPort }), await open(t, { localPort })]
  const server = a.dht.createServer()
  const keyPair = HyperDHT.keyPair()
  const connected = new Promise<string | null>((resolve) =>
    server.on('connection', (stream) => {
      stream.on('error', () => {})
      resolve(stream.rawStream.remoteHost)
    })
  )
  await server.listen(keyPair)
  const stream = b.dht.connect(keyPair.publicKey)
  stream.on('error', () => {})
  t.is(await connected, '127.0.0.1')
})

test('a LAN that cannot be looked at is a problem with its cause, while it lasts', async (t) => {
  const lan = { fault: 'EADDRINUSE' as string | null, onFound() {}, join() {}, look() {}, close() {} }
  const tcp = { acceptor: null, addressesOf: () => [], discovery: lan }
  const { state, hasLan } = await open(t, { localPort: await freePort(), tcp })
  const [problem] = state.problems()
  t.alike([hasLan, problem?.code], [true, 'LAN_OFFLINE'])
  t.ok(problem?.message.endsWith(': EADDRINUSE'), problem?.message)
  lan.fault = null
  t.alike(state.problems(), [])
})

test('local: a port that another program holds is PORT_IN_USE, with another port as the next step', async (t) => {
  const localPort = await takenPort(t)
  const error = await failsWith(t, 'PORT_IN_USE', () => open(t, { localPort }))
  t.ok(error.message.includes(String(localPort)))
  t.alike(error.next, ['A2A_NODE_LOCAL_PORT=<another port> a2a-node start'])
})

test('local: a port that becomes free while it is asked is taken over', async (t) => {
  const socket = dgram.createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const localPort = socket.address().port
  // The first question is what it ends at.
  socket.once('message', () => socket.close())
  const network = await open(t, { localPort })
  t.is(network.serving(), true)
})

test('private: a served bootstrap is one that others can use', async (t) => {
  const address = `127.0.0.1:${await freePort()}`
  const server = await open(t, { kind: 'private', serveBootstrap: address })
  t.is(server.serving(), true)
  const other = await open(t, { kind: 'private', bootstrap: [address] })
  await other.dht.fullyBootstrapped()
  t.is(other.serving(), false)
  t.ok(other.dht.toArray().length > 0)
})

test('private: an address of another machine is CONFIG_INVALID, and says so', async (t) => {
  // For documentation alone (RFC 5737): no machine has it.
  const error = await failsWith(t, 'CONFIG_INVALID', () =>
    open(t, { kind: 'private', serveBootstrap: '192.0.2.1:29737' })
  )
  t.ok(error.message.includes('192.0.2.1 is no address of this machine'), error.message)
  t.alike(error.next, ['a2a-node start --serve-bootstrap <address of this machine>:29737'])
})

test('private: a port in use is PORT_IN_USE, an address that is none CONFIG_INVALID, and nothing is left open', async (t) => {
  const port = await takenPort(t)
  const error = await failsWith(t, 'PORT_IN_USE', () =>
    open(t, { kind: 'private', serveBootstrap: `127.0.0.1:${port}` })
  )
  t.ok(error.message.includes(String(port)))
  for (const address of ['10.0.0.5', '10.0.0.5:0', '10.0.0.5:99999', 'host name:1', '[::1]:29737']) {
    const { next } = await failsWith(t, 'CONFIG_INVALID', () => open(t, { kind: 'private', serveBootstrap: address }))
    t.alike(next, ['a2a-node start --serve-bootstrap <IPv4 address of this machine>:29737'])
  }
})
