import test from 'brittle'
import HyperDHT from 'hyperdht'
import createTestnet from 'hyperdht/testnet.js'
import { DialRecord, MAX_RECORDED, RecordedDht } from '../../../../src/adapters/mesh/network/dial-record.js'
import type { DialEnd } from '../../../../src/ports/network/reach.js'
import { keyToText } from '../../../../src/kit/ids.js'

test('the record keeps the last end of each peer, and drops those of the longest ago', (t) => {
  const record = new DialRecord()
  const end = (fault: DialEnd['fault']): DialEnd => ({ fault, nats: null, isRandomHere: false })
  record.ended('first', end('silent'))
  record.ended('first', end('not-punched'))
  record.ended('linked', end(null))
  t.alike(record.failed(), [['first', end('not-punched')]])
  t.is(record.of('other'), null)
  for (let i = 0; i < MAX_RECORDED - 1; i++) record.ended(String(i), end('failed'))
  t.alike([record.of('first'), record.of('linked')?.fault], [null, null])
  t.is(record.failed().length, MAX_RECORDED - 1)
})

test('a dial of a key that nobody announces, and one that opens, are recorded', async (t) => {
  const net = await createTestnet(3, { host: '127.0.0.1' })
  const options = { bootstrap: net.bootstrap, host: '127.0.0.1', firewalled: false }
  const [here, there] = [new RecordedDht(options, () => []), new HyperDHT(options)]
  t.teardown(async () => {
    await Promise.all([here, there, ...net.nodes].map((one) => one.destroy({ force: true })))
  })
  const dial = async (key: Uint8Array): Promise<void> => {
    const stream = here.connect(key)
    await new Promise<void>((resolve) => {
      stream.on('open', () => stream.destroy())
      stream.on('close', () => resolve())
    })
  }
  const { publicKey: nobody } = HyperDHT.keyPair()
  await dial(nobody)
  t.is(here.dials.of(keyToText(nobody))?.fault, 'not-found')
  const server = there.createServer({ handshakeClearWait: 1 }, (stream) => stream.on('error', () => {}))
  await server.listen()
  const { publicKey } = there.defaultKeyPair
  await dial(publicKey)
  t.alike(here.dials.of(keyToText(publicKey)), { fault: null, nats: null, isRandomHere: false })
  t.alike(
    here.dials.failed().map(([peer]) => peer),
    [keyToText(nobody)]
  )
})
