import { createRequire } from 'node:module'
import type { Assert } from 'brittle'
import crypto from 'hypercore-crypto'
import type { NoiseStream } from 'hyperswarm'
import { utf8 } from '../../../src/kit/ids.js'
import { hash } from '../../support/membership.js'

type KeyPair = ReturnType<typeof crypto.keyPair>

// The very streams of the DHT: the package is its dependency, not ours.
const require = createRequire(import.meta.url)
const NoiseSecretStream = createRequire(require.resolve('hyperdht'))('@hyperswarm/secret-stream') as new (
  isInitiator: boolean,
  rawStream: null,
  options: { readonly keyPair: KeyPair }
) => NoiseStream

/** Both ends of one encrypted stream inside this process, open, with the keys of two actors. */
export async function streamPair(t: Assert, initiator: string, responder: string): Promise<[NoiseStream, NoiseStream]> {
  const ends = await openPair(keyPairOf(initiator), keyPairOf(responder))
  for (const stream of ends) t.teardown(() => stream.destroy())
  return ends
}

/** Both ends of one encrypted stream inside this process, open; whoever asks for them destroys them. */
export async function openPair(initiator: KeyPair, responder: KeyPair): Promise<[NoiseStream, NoiseStream]> {
  const a = new NoiseSecretStream(true, null, { keyPair: initiator })
  const b = new NoiseSecretStream(false, null, { keyPair: responder })
  const [rawA, rawB] = [a, b].map((stream) => stream.rawStream as unknown as { pipe(to: unknown): void })
  rawA.pipe(rawB)
  rawB.pipe(rawA)
  for (const stream of [a, b]) stream.on('error', () => {})
  await Promise.all([a.opened, b.opened])
  return [a, b]
}

/** The key pair of an actor. */
export function keyPairOf(name: string): KeyPair {
  return crypto.keyPair(hash(utf8(`actor/${name}`)))
}

/** Resolves when the stream is gone. */
export function untilClosed(stream: NoiseStream): Promise<void> {
  return stream.destroyed ? Promise.resolve() : new Promise((resolve) => stream.once('close', resolve))
}
