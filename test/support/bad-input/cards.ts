import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'
import { allowedHost } from '../../../src/adapters/a2a/net/address-guard.js'
import { MAX_REMOTE_CARD_BYTES } from '../../../src/adapters/a2a/remote/remote-card.js'
import { callOnce } from '../../../src/adapters/a2a/remote/remote-once.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { remoteScene, remoteSpec } from '../a2a/remote-scene.js'
import { leakIn } from './scene.js'
import type { Cell } from './table.js'

/** A card that can be used, and members that make it one that cannot. */
function card(host: string, more: object = {}): object {
  return {
    name: 'Evil',
    description: 'Evil.',
    version: '1.0.0',
    capabilities: { streaming: false },
    supportedInterfaces: [{ url: `http://${host}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    skills: [{ id: 'talk', name: 'Talk', description: '', tags: [] }],
    ...more
  }
}

/** Cards that cannot be used, and why that is. */
const BAD: readonly (readonly [make: (host: string) => string, why: RegExp])[] = [
  [() => '', /not JSON/],
  [() => '<html><body>no card</body></html>', /not JSON/],
  [() => '[]', /no JSON object/],
  [() => '{}', /no agent card/],
  [() => '{"__proto__":{"x":1}}', /__proto__/],
  [() => '{"a":'.repeat(5000), /not JSON|nested/],
  [(host) => JSON.stringify(card(host, { skills: 'none' })), /skills/],
  [(host) => JSON.stringify(card(host, { name: 7 })), /name/],
  [(host) => JSON.stringify(card(host, { description: 'x'.repeat(MAX_REMOTE_CARD_BYTES) })), /more than 262144 bytes/],
  [
    (host) => JSON.stringify(card(host, { supportedInterfaces: [{ url: 'http://x', protocolBinding: 'GRPC' }] })),
    /no address that this node can call/
  ],
  [() => JSON.stringify(card('169.254.169.254')), /refused.*linkLocal/]
]

/** Serves each card in turn, and tells what the node makes of it. */
async function tried(t: Assert, ask: (host: string) => Promise<string>): Promise<void> {
  let answer = ''
  let calls = 0
  const server = http.createServer((request, response) => {
    if (request.method !== 'GET') calls++
    response.setHeader('content-type', 'application/json').end(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const [make, why] of BAD) {
    answer = make(host)
    const reason = await ask(host)
    t.ok(
      why.test(reason) && reason.length < 1000 && leakIn(reason, 'bob') === null,
      `${answer.slice(0, 80)}: ${reason}`
    )
  }
  t.is(calls, 0, 'nobody was asked anything')
}

/** A card of the config: its agent is not offered, and the node says why. */
export const imported: Cell = (t) =>
  tried(t, async (host) => {
    const scene = await remoteScene(t, remoteSpec(`http://${host}/card`))
    await scene.settled()
    t.is(scene.agents().length, 0)
    const { lastError } = scene.info()
    await scene.remotes.close()
    return lastError ?? ''
  })

/** `call <card URL>`: the call fails, and says why. */
export const called: Cell = (t) =>
  tried(t, async (host) => {
    const clock = systemClock()
    const net = { clock, policy: { allowed: [allowedHost('127.0.0.1') ?? []].flat() } }
    const run = { signal: new AbortController().signal, progress: () => {} }
    const outcome = await callOnce(net, { input: { card: `http://${host}/card`, input: 'x' }, requestId: 'r1' }, run)
    return outcome.ok ? 'it went' : outcome.message
  })
