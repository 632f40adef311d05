import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  createChannel,
  stepChannel,
  type ChannelInput,
  type ChannelState,
  type ChannelStatus
} from '../../../src/domain/channel/machine.js'
import { holds } from '../../support/holds.js'

/** The moves of the spec; a tick may also close a channel that has no link. */
const MOVES: Record<ChannelStatus, readonly ChannelStatus[]> = {
  connecting: ['open', 'closed'],
  open: ['reconnecting', 'closed'],
  reconnecting: ['open', 'closed'],
  closed: []
}

const arbInput: fc.Arbitrary<ChannelInput> = fc.oneof(
  fc.constant({ type: 'acknowledged' } as const),
  fc.constant({ type: 'disconnected' } as const),
  fc.constant({ type: 'tick' } as const),
  fc.constant({ type: 'close', reason: 'done' } as const)
)

function after(inputs: readonly ChannelInput['type'][], giveUpMs = 100): ChannelState {
  return inputs.reduce(
    (state, type) => {
      const step = stepChannel(state, type === 'close' ? { type, reason: 'done' } : { type }, 0)
      assert.ok(step.ok)
      return step.state
    },
    createChannel(0, giveUpMs)
  )
}

/** What each input does, by hand from the spec; null: the move is refused. Time runs out for who has no link. */
function expected(status: ChannelStatus, input: ChannelInput['type'], isLate: boolean): ChannelStatus | null {
  if (status === 'closed') return null
  if (input === 'close') return 'closed'
  if (input === 'acknowledged') return status === 'open' ? null : 'open'
  if (input === 'disconnected') return status === 'open' ? 'reconnecting' : null
  return isLate && status !== 'open' ? 'closed' : status
}

test('Feature: a2a-mcp-protocols, Property 10: Channel state machine validity', async (t) => {
  await holds(
    t,
    fc.property(fc.array(fc.tuple(arbInput, fc.nat({ max: 80 })), { maxLength: 40 }), (script) => {
      let state = createChannel(0, 100)
      assert.equal(state.status, 'connecting')
      let now = 0
      for (const [input, passed] of script) {
        now += passed
        const before = state
        const step = stepChannel(state, input, now)
        const next = expected(before.status, input.type, before.giveUpAt !== null && now >= before.giveUpAt)
        assert.equal(step.ok ? step.state.status : null, next, `${before.status}, ${input.type}`)
        if (!step.ok) continue
        state = step.state
        assert.ok(
          state.status === before.status || MOVES[before.status].includes(state.status),
          `${before.status} to ${state.status}`
        )
        assert.equal(step.effects.length, state.status === before.status ? 0 : 1)
        assert.equal(state.giveUpAt === null, state.status === 'open' || state.status === 'closed')
      }
    }),
    1000
  )
})

test('an acknowledged channel opens, a lost link makes it reconnect, a new link opens it again', (t) => {
  const open = stepChannel(createChannel(0), { type: 'acknowledged' }, 5)
  assert.ok(open.ok)
  t.alike([open.state.status, open.effects], ['open', [{ type: 'opened', isAgain: false }]])
  const lost = stepChannel(open.state, { type: 'disconnected' }, 9)
  assert.ok(lost.ok)
  t.alike([lost.state.status, lost.effects], ['reconnecting', [{ type: 'reconnect', giveUpAt: 60_009 }]])
  const again = stepChannel(lost.state, { type: 'acknowledged' }, 12)
  assert.ok(again.ok)
  t.alike([again.state.status, again.effects], ['open', [{ type: 'opened', isAgain: true }]])
})

test('a channel that finds no link in time closes by itself', (t) => {
  for (const state of [after([]), after(['acknowledged', 'disconnected'])]) {
    const early = stepChannel(state, { type: 'tick' }, 99)
    assert.ok(early.ok)
    t.is(early.state.status, state.status)
    const late = stepChannel(state, { type: 'tick' }, 100)
    assert.ok(late.ok)
    t.alike(late.effects, [{ type: 'closed', reason: 'no link within 100 ms' }])
  }
  const open = stepChannel(after(['acknowledged']), { type: 'tick' }, 1_000_000)
  t.is(open.ok && open.state.status, 'open')
})

test('moves that make no sense are refused as values', (t) => {
  const refused = (inputs: readonly ChannelInput['type'][], input: ChannelInput): boolean =>
    !stepChannel(after(inputs), input, 0).ok
  t.is(refused([], { type: 'disconnected' }), true)
  t.is(refused(['acknowledged'], { type: 'acknowledged' }), true)
  t.is(refused(['acknowledged', 'disconnected'], { type: 'disconnected' }), true)
  for (const input of [
    { type: 'acknowledged' },
    { type: 'disconnected' },
    { type: 'tick' },
    { type: 'close', reason: 'x' }
  ] as const) {
    t.is(refused(['close'], input), true, `closed: ${input.type}`)
  }
})
