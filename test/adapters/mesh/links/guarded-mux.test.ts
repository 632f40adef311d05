import test from 'brittle'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import type { Codec } from 'compact-encoding'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import type { ChannelOptions } from 'protomux'
import { guardMux } from '../../../../src/adapters/mesh/links/guarded-mux.js'
import { Uncaught } from '../../../support/uncaught.js'
import { streamPair, untilClosed } from '../stream-pair.js'

const fail = (): never => {
  throw new TypeError('it failed')
}
const failLater = (): Promise<never> => Promise.reject(new TypeError('it failed'))
const FAILING: Codec<Uint8Array> = { ...c.raw, decode: fail }

/** Ways in which a package fails at what a peer sent. */
const FAULTS: Readonly<Record<string, Partial<ChannelOptions>>> = {
  'a handler': { messages: [{ encoding: c.raw, onmessage: fail }] },
  'a handler, later': { messages: [{ encoding: c.raw, onmessage: failLater }] },
  'a decoder': { messages: [{ encoding: FAILING, onmessage: () => {} }] },
  'the decoder of the handshake': { handshake: FAILING as unknown as Codec<null> },
  'what hears of the open channel': { onopen: fail },
  'what hears of the open channel, later': { onopen: failLater }
}

/** Opens a channel at both ends, and sends a message. */
async function send(t: Assert, prepare: (mux: Protomux) => void): Promise<{ stream: NoiseStream; reasons: string[] }> {
  const [peer, stream] = await streamPair(t, 'eve', 'owner')
  const mux = Protomux.from(stream)
  const reasons: string[] = []
  guardMux(mux, (reason) => reasons.push(reason))
  prepare(mux)
  const channel = Protomux.from(peer).createChannel<Uint8Array>({
    protocol: 'x',
    handshake: c.raw,
    messages: [{ encoding: c.raw }]
  })
  channel?.open(Uint8Array.of(1))
  channel?.messages[0]?.send(Uint8Array.of(1))
  return { stream, reasons }
}

test('a mistake of a package at what a peer sent ends the stream and nothing else', async (t) => {
  await new Uncaught().during(async () => {
    for (const [what, options] of Object.entries(FAULTS)) {
      const messages = [{ encoding: c.raw }]
      const { stream, reasons } = await send(t, (mux) =>
        mux.createChannel({ protocol: 'x', messages, ...options })?.open(Uint8Array.of(1))
      )
      await untilClosed(stream)
      t.alike(reasons, ['a package failed at it: it failed'], what)
    }
    for (const notify of [fail, failLater]) {
      const { stream, reasons } = await send(t, (mux) => mux.pair({ protocol: 'x' }, notify))
      await untilClosed(stream)
      t.alike(reasons, ['a package failed at it: it failed'])
    }
  })
})

test('an error that is no mistake ends a stream as before, and is not reported', async (t) => {
  const refuse = (): never => {
    throw new Error('not this')
  }
  const { stream, reasons } = await send(t, (mux) =>
    mux.createChannel({ protocol: 'x', messages: [{ onmessage: refuse }] })?.open()
  )
  await untilClosed(stream)
  t.alike(reasons, [])
})
