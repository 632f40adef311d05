import test from 'brittle'
import { ChannelLife } from '../../../src/node/peers/peer-session.js'
import { ManualClock } from '../../support/manual-clock.js'

function living(): { clock: ManualClock; life: ChannelLife; moves: string[] } {
  const clock = new ManualClock()
  const moves: string[] = []
  const life = new ChannelLife({
    clock,
    giveUpMs: 1000,
    onMove: ({ type }) => moves.push(`${type} while ${life.state.status}`)
  })
  return { clock, life, moves }
}

test('a channel that never has a link closes when its time is up, and leaves no timer', (t) => {
  const { clock, life, moves } = living()
  clock.advance(999)
  t.is(life.state.status, 'connecting')
  clock.advance(1)
  t.is(life.state.status, 'closed')
  t.alike(moves, ['closed while closed'])
  t.is(clock.pending, 0)
})

test('while there is a link no time is up; each lost one begins it anew', (t) => {
  const { clock, life, moves } = living()
  for (let round = 0; round < 3; round++) {
    life.step({ type: 'acknowledged' })
    t.is(clock.pending, 0)
    clock.advance(60_000)
    life.step({ type: 'disconnected' })
    clock.advance(999)
    t.is(life.state.status, 'reconnecting')
  }
  clock.advance(1)
  t.is(life.state.status, 'closed')
  const round = ['opened while open', 'reconnect while reconnecting']
  t.alike(moves, [...round, ...round, ...round, 'closed while closed'])
})

test('an input that is impossible in the state of a channel changes nothing', (t) => {
  const { clock, life, moves } = living()
  life.step({ type: 'disconnected' })
  life.step({ type: 'close', reason: 'done' })
  life.step({ type: 'acknowledged' })
  life.step({ type: 'close', reason: 'again' })
  t.alike([life.state.status, life.state.reason, clock.pending], ['closed', 'done', 0])
  t.alike(moves, ['closed while closed'])
})
