import test from 'brittle'
import Protomux from 'protomux'
import { GatedStreams } from '../../../../src/adapters/mesh/links/gated-streams.js'
import { StreamLink } from '../../../../src/adapters/mesh/links/link.js'
import { hash, verify } from '../../../../src/adapters/mesh/network/sodium.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import type { SignedCertificate } from '../../../../src/domain/membership/types.js'
import { EMPTY_VIEW } from '../../../../src/domain/membership/view.js'
import { keyToText } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { streamPair, untilClosed } from '../stream-pair.js'

function gatedStreams(): GatedStreams {
  const clock = new ManualClock()
  return new GatedStreams({
    software: 'test',
    clock,
    hash,
    verify,
    telemetry: new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} }),
    view: () => EMPTY_VIEW,
    identity: () => null,
    isKeptOut: () => false,
    onPassed: () => {},
    onClosed: () => {},
    onFault: () => {},
    onRefused: () => {}
  })
}

test('of two links to a peer the one of the worse path ends, whichever opened last; it sends what it took before, and takes nothing more', async (t) => {
  const [own, other] = await streamPair(t, 'owner', 'peer')
  const [second] = await streamPair(t, 'owner', 'peer')
  const peer = keyToText(own.remotePublicKey)
  const [gated, far] = [gatedStreams(), gatedStreams()]
  for (const stream of [own, second]) gated.add(stream)
  far.add(other)
  const frames: number[] = []
  const linkOf = (stream: typeof own): StreamLink =>
    new StreamLink({
      id: 1,
      peer,
      peerVersion: '1',
      certificate: {} as SignedCertificate,
      stream,
      mux: Protomux.from(stream),
      onFrame: (_link, frame) => void frames.push(...frame),
      onCredit: () => {},
      onMalformed: () => {},
      onChannelClosed: () => {}
    })
  const [link] = [linkOf(own), linkOf(other)]
  const [worse, better] = gated.all()
  if (worse === undefined || better === undefined) return t.fail('two streams were added')
  worse.session = { link, relay: {} as never }
  gated.endWorse(peer)
  t.absent(link.closed, 'no better one')
  link.send(Uint8Array.of(7))
  const tcp = { path: 'tcp', closed: false, retire: () => t.fail('the better one stays') }
  better.session = { link: tcp as never, relay: {} as never }
  gated.endWorse(keyToText(own.publicKey))
  t.absent(link.closed, 'of another peer')
  gated.endWorse(peer)
  t.ok(link.closed)
  t.absent(link.send(Uint8Array.of(8)))
  await untilClosed(other)
  t.alike(frames, [7])
})
