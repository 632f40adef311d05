import type { Assert } from 'brittle'
import HyperDHT from 'hyperdht'
import type { DhtAddress, KeyPair } from 'hyperdht'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { Channel } from 'protomux'
import { keyFromText, type NodeId } from '../../../src/kit/ids.js'

/** A stream of somebody who knows a node's key and nothing of its mesh, and need not keep to any rule. */
export interface RawStream {
  readonly stream: NoiseStream
  readonly mux: Protomux
  /** The hello channel, open here; what comes on it is dropped. Without it a node cuts the stream. */
  readonly gate: Channel
  readonly closed: Promise<void>
}

/** One DHT node that opens streams, gone when the test ends. */
export async function rawDht(t: Assert, bootstrap: readonly DhtAddress[]): Promise<HyperDHT> {
  const dht = new HyperDHT({ bootstrap, host: '127.0.0.1', firewalled: false })
  t.teardown(() => dht.destroy({ force: true }))
  await dht.fullyBootstrapped()
  return dht
}

/** Opens a stream to a node with a fresh key, or the given one. */
export async function rawStream(
  t: Assert,
  bootstrap: readonly DhtAddress[],
  to: { readonly id: NodeId }
): Promise<RawStream> {
  return dial(await rawDht(t, bootstrap), to)
}

/** Opens a stream to a node; rejects when the stream closes before it is open. */
export async function dial(
  dht: HyperDHT,
  to: { readonly id: NodeId },
  keyPair: KeyPair = HyperDHT.keyPair()
): Promise<RawStream> {
  const stream = dht.connect(keyFromText(to.id), { keyPair })
  stream.on('error', () => {})
  const closed = new Promise<void>((resolve) => stream.once('close', resolve))
  await Promise.race([
    new Promise<void>((resolve) => stream.once('open', resolve)),
    closed.then(() => Promise.reject(new Error('the stream did not open')))
  ])
  const mux = Protomux.from(stream)
  const gate = mux.createChannel({ protocol: 'a2a-node/gate', messages: [{}] })
  if (gate === null) throw new Error('the stream is gone')
  gate.open()
  return { stream, mux, gate, closed }
}
