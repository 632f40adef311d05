import net, { type AddressInfo } from 'node:net'
import test from 'brittle'
import type { Assert } from 'brittle'
import { KnownAddresses } from '../../../src/adapters/mesh/network/known-addresses.js'
import type { NetworkHome } from '../../../src/compose/network/open-network.js'
import { openTcp } from '../../../src/compose/network/open-tcp.js'
import { Unwind } from '../../../src/compose/unwind.js'

interface Given {
  readonly listen: string
  readonly network: 'public' | 'private' | 'local'
  readonly bootstrap?: readonly string[]
  readonly addresses?: readonly string[]
  /** Port of the last run. */
  readonly port?: number
}

function opened(t: Assert, { listen, network, bootstrap = [], addresses = [], port }: Given) {
  const unwind = new Unwind(() => {})
  t.teardown(() => unwind.run())
  const config = { tcp: { listen, addresses }, network: { serveBootstrap: null } }
  const home = { options: { config }, record: { network, bootstrap }, unwind } as unknown as NetworkHome
  const known = new KnownAddresses({ port: port ?? null, peers: [] }, () => {})
  return { known, tcp: openTcp(home, known) }
}

test('by default TCP is served for other machines, not in a local network, and on loopback where the bootstrap node is', async (t) => {
  const local = await opened(t, { listen: 'auto', network: 'local' }).tcp
  t.alike([local.bound, local.acceptor, local.problems], [null, null, []])
  const here = await opened(t, { listen: 'auto', network: 'private', bootstrap: ['127.0.0.1:29737'] }).tcp
  t.ok(here.bound?.startsWith('127.0.0.1:'), String(here.bound))
  t.alike(here.addresses, [], 'no other machine reaches it')
  const off = await opened(t, { listen: 'off', network: 'public' }).tcp
  t.is(off.bound, null)
})

test('a local network serves TCP on loopback alone, and refuses another address', async (t) => {
  const { bound, addresses } = await opened(t, { listen: '0', network: 'local' }).tcp
  t.ok(bound?.startsWith('127.0.0.1:'))
  t.alike(addresses, [bound])
  const wide = opened(t, { listen: '0.0.0.0:0', network: 'local' }).tcp
  const { code } = (await wide.catch((error: unknown) => error)) as { code: string }
  t.is(code, 'CONFIG_INVALID')
})

test('the port of the last run is taken again, and another one when a program uses it; a given port in use fails', async (t) => {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port: taken } = server.address() as AddressInfo
  const bootstrap = ['127.0.0.1:29737']
  const other = opened(t, { listen: 'auto', network: 'private', bootstrap, port: taken })
  const { bound } = await other.tcp
  t.not(bound, `127.0.0.1:${taken}`)
  t.is(`127.0.0.1:${other.known.port}`, bound, 'it is remembered')
  const given = opened(t, { listen: `127.0.0.1:${taken}`, network: 'private' }).tcp
  const { code } = (await given.catch((error: unknown) => error)) as { code: string }
  t.is(code, 'PORT_IN_USE')
  await new Promise((resolve) => server.close(resolve))
  const again = await opened(t, { listen: 'auto', network: 'private', bootstrap, port: taken }).tcp
  t.is(again.bound, `127.0.0.1:${taken}`)
})

test('given addresses are those that members get', async (t) => {
  const { addresses } = await opened(t, { listen: '127.0.0.1:0', network: 'private', addresses: ['a.example:7422'] })
    .tcp
  t.alike(addresses, ['a.example:7422'])
})
