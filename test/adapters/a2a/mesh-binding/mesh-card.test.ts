import test, { type Assert } from 'brittle'
import { meshCard } from '../../../../src/adapters/a2a/mesh-binding/mesh-card.js'
import type { MeshReach } from '../../../../src/adapters/a2a/mesh-binding/mesh-client.js'
import { MAX_REMOTE_CARD_BYTES } from '../../../../src/adapters/a2a/remote/remote-card.js'
import { CARD_TIMEOUT_MS, type RemoteNet } from '../../../../src/adapters/a2a/remote/remote-connect.js'
import { RemoteAgent } from '../../../../src/adapters/a2a/remote/remote-agent.js'
import { RemoteContexts } from '../../../../src/adapters/a2a/remote/remote-contexts.js'
import { RemoteFault } from '../../../../src/adapters/a2a/remote/remote-fault.js'
import { ImportLink } from '../../../../src/adapters/agents/imports/import-link.js'
import { type NodeId, utf8 } from '../../../../src/kit/ids.js'
import type { CallPiece } from '../../../../src/ports/member-calls.js'
import { remoteSpec } from '../../../support/a2a/remote-scene.js'
import { eventually } from '../../../support/agents/eventually.js'
import { FakeStore } from '../../../support/fake-store.js'
import { ManualClock } from '../../../support/manual-clock.js'

const URL = 'a2a-mesh://far/agents/talk'

function reachOf(clock: ManualClock, open: MeshReach['calls']['open']): MeshReach {
  return { clock, calls: { open }, peer: () => 'far' }
}

test('a member that answers a request for a card with an endless stream is cut off', async (t: Assert) => {
  let [sent, isEnded] = [0, false]
  async function* endless(): AsyncIterable<CallPiece> {
    try {
      for (;;)
        yield await Promise.resolve({ type: 'item' as const, generation: ++sent, body: utf8('x'.repeat(10_000)) })
    } finally {
      isEnded = true
    }
  }
  const asked = meshCard(reachOf(new ManualClock(), endless), { url: URL, agent: null }, new AbortController().signal)
  const fault: unknown = await asked.catch((error: unknown) => error)
  t.ok(
    fault instanceof RemoteFault && fault.kind === 'answered' && /more than 262144 bytes/.test(fault.message),
    String(fault)
  )
  t.ok(isEnded && sent <= MAX_REMOTE_CARD_BYTES / 10_000 + 1, String(sent))
})

test('an agent of a member that never gives its card has failed after a time', async (t: Assert) => {
  const clock = new ManualClock()
  let asked = 0
  async function* silent(
    _peer: NodeId,
    _request: unknown,
    signal?: { addEventListener(type: 'abort', listener: () => void): void }
  ) {
    asked++
    await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
    yield* []
  }
  const net: RemoteNet = { clock, policy: { allowed: [] }, mesh: reachOf(clock, silent) }
  const contexts = new RemoteContexts({ store: new FakeStore(), onFault: () => {} })
  const adapter = new RemoteAgent({ spec: remoteSpec(URL), secret: null, net, contexts, log: () => {} })
  const link = new ImportLink({
    adapter,
    clock,
    chance: () => 0.5,
    ttlMs: 1000,
    onList: () => Promise.resolve(),
    onState: () => {}
  })
  t.teardown(() => link.close())
  link.input({ type: 'start' })
  await eventually(() => asked === 1)
  clock.advance(CARD_TIMEOUT_MS)
  await eventually(() => link.state.phase === 'backoff')
  t.is(link.state.lastError, 'it did not list its skills within 10 s')
})
