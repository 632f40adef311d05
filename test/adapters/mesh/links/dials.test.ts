import test from 'brittle'
import { Dials } from '../../../../src/adapters/mesh/links/dials.js'
import type { Link } from '../../../../src/ports/mesh.js'
import { failsWith } from '../../../support/fails.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

const link = (name: string): Link => ({ id: 1, peer: actor(name).id }) as Link

test('everybody who waits for a peer gets its link, the others go on waiting', async (t) => {
  const clock = new ManualClock()
  const dials = new Dials(clock)
  const [one, two] = [dials.wait(actor('ann').id, 100), dials.wait(actor('ann').id, 200)]
  const other = dials.wait(actor('bob').id, 300)
  const ann = link('ann')
  dials.opened(ann)
  t.is(await one, ann)
  t.is(await two, ann)
  clock.advance(300)
  const error = await failsWith(t, 'PEER_OFFLINE', () => other)
  t.alike(error.data, { peer: actor('bob').id })
  t.is(clock.pending, 0, 'no timer is left')
})

test('a node without a free slot ends the wait at once, with its reason', async (t) => {
  const clock = new ManualClock()
  const dials = new Dials(clock)
  const [waiting, other] = [dials.wait(actor('ann').id, 100), dials.wait(actor('bob').id, 100)]
  dials.refused(actor('ann').id, 'no place')
  const error = await failsWith(t, 'PEER_OFFLINE', () => waiting)
  t.ok(error.message.includes('no place'))
  dials.opened(link('bob'))
  t.is((await other).peer, link('bob').peer)
  t.is(clock.pending, 0)
})

test('a link that comes too late changes nothing', async (t) => {
  const clock = new ManualClock()
  const dials = new Dials(clock)
  const waiting = dials.wait(actor('ann').id, 100)
  clock.advance(100)
  dials.opened(link('ann'))
  await failsWith(t, 'PEER_OFFLINE', () => waiting)
})
