import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import { AgentChannel } from '../../../src/node/sdk/channel.js'
import { failsWith } from '../../support/fails.js'
import { ManualClock } from '../../support/manual-clock.js'

const HERE = 'a@one'
const THERE = 'b@two'
const GIVE_UP_MS = 60_000

function envelopeOf(id: string, sender = HERE, recipient = THERE): A2AEnvelope {
  return { id, schemaVersion: 1, sender, recipient, type: 'notification', timestamp: 1, payload: {} }
}

interface Scene {
  readonly channel: AgentChannel
  readonly clock: ManualClock
  readonly posted: string[]
  /** Ids and codes of the messages that were not sent. */
  readonly refused: string[]
  isLinked: boolean
  refusal: NodeError | null
  closed: number
}

function scene(): Scene {
  const clock = new ManualClock()
  const posted: string[] = []
  const refused: string[] = []
  const state: Scene = {
    clock,
    posted,
    refused,
    isLinked: true,
    refusal: null,
    closed: 0,
    channel: new AgentChannel({
      clock,
      telemetry: new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} }),
      id: 'chan_1',
      localAgent: HERE,
      remoteAgent: THERE,
      transport: 'local',
      giveUpMs: GIVE_UP_MS,
      post: ({ id }) => {
        if (state.refusal !== null) return Promise.reject(state.refusal)
        posted.push(id)
        return Promise.resolve()
      },
      isLinked: () => state.isLinked,
      onRefused: ({ code }, { id }) => refused.push(`${id} ${code}`),
      onClosed: () => {
        state.closed++
      }
    })
  }
  return state
}

test('messages wait for the link and leave in the order in which they were sent', async (t) => {
  const { channel, posted } = scene()
  const sends = ['m1', 'm2', 'm3'].map((id) => channel.send(envelopeOf(id)))
  t.alike([channel.status === 'open', posted], [false, []])
  channel.linked()
  await Promise.all(sends)
  t.alike([channel.status, posted], ['open', ['m1', 'm2', 'm3']])
})

test('a message of other agents is refused, and one that the rules refuse fails alone', async (t) => {
  const state = scene()
  const { channel, posted } = state
  channel.linked()
  await failsWith(t, 'USAGE', () => channel.send(envelopeOf('m1', 'c@one')))
  await failsWith(t, 'USAGE', () => channel.send(envelopeOf('m1', HERE, 'c@two')))
  state.refusal = new NodeError('POLICY_DENIED', 'no')
  await failsWith(t, 'POLICY_DENIED', () => channel.send(envelopeOf('m2')))
  state.refusal = null
  await channel.send(envelopeOf('m3'))
  t.alike(posted, ['m3'])
})

test('a message whose link is lost goes over the next one', async (t) => {
  const state = scene()
  const { channel, posted } = state
  channel.linked()
  state.refusal = new NodeError('PEER_OFFLINE', 'gone')
  state.isLinked = false
  const sending = channel.send(envelopeOf('m1'))
  for (let tick = 0; tick < 10; tick++) await Promise.resolve()
  channel.unlinked()
  state.refusal = null
  state.isLinked = true
  channel.linked()
  await sending
  t.alike(posted, ['m1'])
})

test('a channel without a link for too long closes once, and fails waiting and later messages', async (t) => {
  const state = scene()
  const { channel, clock } = state
  channel.linked()
  channel.unlinked()
  const sending = failsWith(t, 'CHANNEL_CLOSED', () => channel.send(envelopeOf('m1')))
  clock.advance(GIVE_UP_MS)
  await sending
  await failsWith(t, 'CHANNEL_CLOSED', () => channel.send(envelopeOf('m2')))
  await channel.close()
  t.alike([channel.status, state.closed], ['closed', 1])
})

test('only messages of the agent at the other end are received, and none after the close', async (t) => {
  const { channel } = scene()
  const heard: string[] = []
  channel.onMessage(({ id }) => heard.push(id))
  channel.received(envelopeOf('m1', THERE, HERE))
  channel.received(envelopeOf('m2', 'c@three', HERE))
  await channel.close()
  channel.received(envelopeOf('m3', THERE, HERE))
  t.alike(heard, ['m1'])
})
