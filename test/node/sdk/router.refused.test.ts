import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { ErrorCode } from '../../../src/kit/errors.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'
import { made, scene } from './router-scene.js'

/** An envelope of the agent `sender`, and what becomes of it. */
interface Attempt {
  readonly change: Readonly<Record<string, unknown>>
  /** null: it is delivered. */
  readonly code: ErrorCode | null
}

const ATTEMPTS: readonly Attempt[] = [
  { change: {}, code: null },
  { change: { recipient: 'far' }, code: null },
  ...[0, 2, 1.5, -1, 2 ** 40, '2', '1'].map((schemaVersion) => ({
    change: { schemaVersion },
    code: 'SCHEMA_VERSION_MISMATCH' as const
  })),
  ...[undefined, null, {}].map((schemaVersion) => ({ change: { schemaVersion }, code: 'INVALID_ENVELOPE' as const })),
  // A version of another program decides before fields that only it may know.
  { change: { schemaVersion: 2, type: 'sing' }, code: 'SCHEMA_VERSION_MISMATCH' },
  { change: { type: 'sing' }, code: 'INVALID_ENVELOPE' },
  { change: { timestamp: -1 }, code: 'INVALID_ENVELOPE' },
  { change: { recipient: 7 }, code: 'INVALID_ENVELOPE' },
  { change: { sender: 'ghost' }, code: 'AGENT_NOT_FOUND' },
  { change: { recipient: 'nobody' }, code: 'AGENT_NOT_FOUND' },
  { change: { recipient: 'no.such', metadata: { tier: 3, routingHint: 'capability' } }, code: 'CAPABILITY_NOT_FOUND' },
  { change: { recipient: 'strong' }, code: 'ESCALATION_REQUIRED' },
  { change: { metadata: { tier: 3, sandboxId: 'box' } }, code: 'SANDBOX_VIOLATION' }
]

async function attemptScene(t: Assert) {
  const { world, places, listen } = await scene(t)
  const [here, there] = places
  const sender = await listen(here, 'sender', { tier: 3 })
  const near = await listen(here, 'near', { tier: 3 })
  await listen(there, 'far', { tier: 3 })
  await listen(here, 'strong')
  const envelope = (change: Attempt['change'] = {}): A2AEnvelope => ({
    ...made(here, { sender, recipient: near, type: 'notification', payload: {} }),
    ...change
  })
  return { world, here, there, sender, near, envelope }
}

test('an envelope of another schema version is refused as SCHEMA_VERSION_MISMATCH by every way to send', async (t: Assert) => {
  const { here, there, sender, near, envelope } = await attemptScene(t)
  const channel = await here.layer.channels.openChannel(sender, near)
  for (const { change, code } of ATTEMPTS.filter((one) => 'schemaVersion' in one.change)) {
    const { code: refused, error } = await here.layer.router.send(envelope(change))
    t.is(refused, code, JSON.stringify(change))
    if (code === 'SCHEMA_VERSION_MISMATCH')
      t.ok(error?.includes(`expected 1, got ${String(change['schemaVersion'])}`), error)
    await failsWith(t, code ?? 'INTERNAL', () => channel.send(envelope(change)))
    t.is((await here.layer.router.send(envelope({ ...change, recipient: '*' }))).code, code)
  }
  t.is(there.node.counted('messages_received', 'notification'), 0)
})

test('every refused send is counted as an error, and every message by its type, once each', async (t: Assert) => {
  const { world, here, there, envelope } = await attemptScene(t)
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom(...ATTEMPTS), { minLength: 1, maxLength: 12 }),
    async (attempts) => {
      for (const { node } of [here, there]) node.core.observability.resetMetrics()
      for (const { change, code } of attempts)
        assert.equal((await here.layer.router.send(envelope(change))).code, code ?? undefined, JSON.stringify(change))
      await world.settle()
      const { errorCount, messagesByType, totalMessagesSent } = here.node.core.observability.getMetrics()
      const delivered = attempts.filter(({ code }) => code === null)
      assert.equal(errorCount, attempts.length - delivered.length)
      assert.equal(totalMessagesSent, delivered.length)
      assert.equal(messagesByType.notification, delivered.length)
      const far = delivered.filter(({ change }) => change['recipient'] === 'far').length
      assert.equal(there.node.core.observability.getMetrics().messagesByType.notification, far)
    }
  )
  await holds(t, property, 100)
})

test('a message that its channel, its program or its absent peer refuses is counted as one error', async (t: Assert) => {
  const { world, here, there, sender, near, envelope } = await attemptScene(t)
  const { observability } = here.node.core
  const errors = async (act: () => Promise<unknown>): Promise<number> => {
    const before = observability.getMetrics().errorCount
    await act().catch(() => {})
    return observability.getMetrics().errorCount - before
  }
  const channel = await here.layer.channels.openChannel(sender, near)
  t.is(await errors(() => channel.send(envelope({ recipient: 'near' }))), 1, 'an envelope for another agent')
  await channel.close()
  t.is(await errors(() => channel.send(envelope())), 1, 'a closed channel')
  const program = await here.node.core.attach({ id: 'program', tier: 3 })
  t.is(
    await errors(() => program.send({ recipient: 'nobody', type: 'notification', payload: 1 })),
    1,
    'an unknown agent'
  )
  t.is(
    await errors(() => program.send({ recipient: 'strong', type: 'notification', payload: 1 })),
    1,
    'a stronger agent'
  )
  world.net.disconnect(here.node.id, there.node.id)
  await world.settle()
  const before = observability.getMetrics().errorCount
  const { targets = [] } = await here.layer.router.send(envelope({ recipient: '*' }))
  const refused = targets.filter(({ delivered }) => !delivered)
  t.ok(refused.some(({ code }) => code === 'PEER_OFFLINE'))
  t.is(observability.getMetrics().errorCount - before, refused.length, 'absent peers and stronger agents')
})
