import test from 'brittle'
import { Keeper } from '../../../../src/adapters/mesh/links/keeper.js'
import { AWAIT_MS } from '../../../../src/domain/membership/keeper.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

const ann = actor('ann').id
const bob = actor('bob').id

/** A keeper over a transport that only records what it is called with. */
function kept({
  connected = [],
  places = 64,
  chance = 0.5
}: {
  connected?: readonly NodeId[]
  places?: number
  chance?: number
} = {}) {
  const clock = new ManualClock()
  const links = new Set(connected)
  const told = { dialled: [] as NodeId[], left: [] as NodeId[], refreshes: 0 }
  const transport = {
    dial: (peer: NodeId) => void told.dialled.push(peer),
    undial: (peer: NodeId) => void told.left.push(peer),
    refresh: () => void told.refreshes++
  }
  const keeper = new Keeper({
    transport,
    clock,
    networkKind: 'local',
    chance: () => chance,
    isConnected: (peer) => links.has(peer),
    linkCount: () => links.size,
    places
  })
  return { keeper, clock, links, told }
}

test('a wanted member without a link is dialled at once, one that has a link is not', (t) => {
  const { keeper, told } = kept({ connected: [bob] })
  keeper.want([ann, bob])
  t.alike(told.dialled, [ann])
  t.ok(keeper.wants(ann))
  t.absent(keeper.wants(actor('eve').id))
})

test('a member that joins while this node runs dials by itself: it is dialled and looked for only after a while', (t) => {
  for (const chance of [0, 1]) {
    const { keeper, clock, links, told } = kept({ connected: [bob], chance })
    keeper.want([bob])
    clock.advance(200_000)
    const early = told.refreshes
    keeper.want([ann, bob])
    clock.advance(AWAIT_MS * (1 + chance) - 1)
    t.alike([told.dialled, told.refreshes], [[], early])
    t.ok(keeper.wants(ann), 'a dial for a call is kept')
    clock.advance(1)
    t.alike(told.dialled, [ann])
    links.add(ann)
    keeper.connected(ann)
    keeper.want([ann, bob, actor('eve').id])
    links.add(actor('eve').id)
    keeper.connected(actor('eve').id)
    clock.advance(60_000)
    t.alike(told.dialled, [ann], 'the third came by itself')
  }
})

test('a member that stays away is dialled again and again, at growing waits, and discovery is refreshed', (t) => {
  const { keeper, clock, told } = kept()
  keeper.want([ann])
  clock.advance(60_000)
  const minute = told.dialled.length
  t.ok(minute >= 15 && minute <= 20, `${minute} dials in the first minute`)
  t.ok(told.refreshes >= 12, `${told.refreshes} refreshes in the first minute`)
  clock.advance(3_600_000)
  const hour = told.dialled.length - minute
  t.ok(hour >= 60 && hour <= 260, `${hour} dials in the hour after`)
})

test('while everybody is there discovery is refreshed only now and then, and nobody is dialled', (t) => {
  const { keeper, clock, told } = kept({ connected: [ann] })
  keeper.want([ann])
  clock.advance(10_000)
  const early = told.refreshes
  clock.advance(60_000)
  t.ok(told.refreshes - early <= 6, `${told.refreshes - early} refreshes in a minute`)
  t.alike(told.dialled, [])
})

test('a lost member is dialled within half a second, and again no more once it is back', (t) => {
  const { keeper, clock, links, told } = kept({ connected: [ann] })
  keeper.want([ann])
  links.delete(ann)
  keeper.lost(ann)
  t.alike(told.dialled, [], 'not in the same moment: it may come by itself')
  clock.advance(500)
  t.is(told.dialled.length, 1)
  links.add(ann)
  keeper.connected(ann)
  clock.advance(60_000)
  t.is(told.dialled.length, 1)
})

test('with all places taken nobody is dialled any more, by the swarm neither; once one is free the missing are', (t) => {
  const { keeper, clock, links, told } = kept({ places: 1 })
  keeper.want([ann, bob])
  t.alike(told.dialled, [ann, bob])
  links.add(ann)
  keeper.connected(ann)
  t.alike(told.left, [bob])
  const early = told.refreshes
  clock.advance(600_000)
  t.alike(told.dialled, [ann, bob], 'not one dial in ten minutes')
  t.ok(told.refreshes - early <= 60, `${told.refreshes - early} refreshes, as when all is well`)
  links.delete(ann)
  keeper.lost(ann)
  t.alike(told.dialled, [ann, bob, bob])
})

test('with links to half of the places, and more members than places, nobody is dialled in a quiet hour; all others are beyond', (t) => {
  const members = Array.from({ length: 200 }, (_, place) => actor(`member ${place}`).id)
  const connected = members.slice(0, 32)
  const { keeper, clock, told } = kept({ connected })
  keeper.want(members)
  clock.advance(3_600_000)
  t.alike(told.dialled, [])
  t.absent(keeper.welcomes(members[199]), 'nor does the swarm dial whom it finds')
  t.is(keeper.beyond().length, 168)
  t.absent(keeper.beyond().some((one) => connected.includes(one)))
  t.absent(keeper.wants(members[199]))
})

test('a node with too few links in a large mesh dials four at a time until it has half of its places, and lets the others go', (t) => {
  const members = Array.from({ length: 200 }, (_, place) => actor(`member ${place}`).id)
  const { keeper, clock, links, told } = kept()
  keeper.want(members)
  t.is(told.dialled.length, 4)
  clock.advance(2000)
  t.is(told.dialled.length, 4, 'while these may still come')
  clock.advance(60_000 - 2000)
  t.ok(told.dialled.length <= 4 * 25, `${told.dialled.length} dials in a minute in which nobody answers`)
  for (const peer of members.slice(100, 132)) {
    links.add(peer)
    keeper.connected(peer)
  }
  const before = told.dialled.length
  clock.advance(600_000)
  t.is(told.dialled.length, before)
})

test('not everybody looks for the same members first', (t) => {
  const members = Array.from({ length: 200 }, (_, place) => actor(`member ${place}`).id)
  const first = [0.1, 0.9].map((chance) => {
    const { keeper, told } = kept({ chance })
    keeper.want(members)
    return told.dialled
  })
  t.unlike(first[0], first[1])
})

test('a peer that had no slot, or freed one, is left alone; where links are few for ten seconds, longer each time', (t) => {
  const cat = actor('cat').id
  const { keeper, clock, links, told } = kept({ connected: [ann, bob, cat] })
  keeper.want([ann, bob, cat])
  t.alike(keeper.beyond(), [])
  t.ok(keeper.welcomes(ann))
  t.ok(keeper.welcomes(actor('stranger').id))
  keeper.rest(ann)
  links.delete(ann)
  keeper.lost(ann)
  clock.advance(600_000)
  t.alike(told.dialled, [], 'the other two are enough')
  t.alike(keeper.beyond(), [ann])
  t.ok(told.left.includes(ann))
  t.absent(keeper.welcomes(ann), 'else the swarm would dial it by itself')
  keeper.rest(bob)
  links.delete(bob)
  clock.advance(9000)
  keeper.lost(bob)
  t.alike(told.dialled, [ann], 'it has rested long enough')
  clock.advance(31_000)
  t.alike(new Set(told.dialled), new Set([ann, bob]))
  keeper.rest(ann)
  keeper.rest(bob)
  const before = told.dialled.length
  clock.advance(19_000)
  t.is(told.dialled.length, before)
  clock.advance(60_000)
  t.ok(told.dialled.length > before)
  keeper.want([ann, bob, cat, actor('new').id])
  t.alike(keeper.beyond(), [], 'a change of members may have left a place')
})

test('a neighbour that is lost is dialled for a minute, although there are enough others', (t) => {
  const members = Array.from({ length: 80 }, (_, place) => actor(`member ${place}`).id)
  const { keeper, clock, links, told } = kept({ connected: members.slice(0, 40) })
  keeper.want(members)
  const gone = members[0]
  links.delete(gone)
  keeper.lost(gone)
  clock.advance(3_600_000)
  t.alike(new Set(told.dialled), new Set([gone]))
  t.is(told.dialled.length, 17)
})

test('a peer lost a second time is dialled as fast as at the first', (t) => {
  const { keeper, clock, links, told } = kept()
  keeper.want([ann])
  clock.advance(60_000)
  links.add(ann)
  keeper.connected(ann)
  links.delete(ann)
  keeper.lost(ann)
  const before = told.dialled.length
  clock.advance(500)
  t.is(told.dialled.length, before + 1)
})

test('a peer that is no longer wanted is left alone', (t) => {
  const { keeper, clock, told } = kept()
  keeper.want([ann, bob])
  keeper.want([bob])
  t.alike(told.left, [ann])
  told.dialled.length = 0
  clock.advance(10_000)
  t.ok(told.dialled.length > 0)
  t.absent(told.dialled.includes(ann))
})

test('many missing members are dialled a few at a time', (t) => {
  const { keeper, told } = kept()
  keeper.want(Array.from({ length: 30 }, (_, place) => actor(`member ${place}`).id))
  t.is(told.dialled.length, 4)
})

test('a refresh can be asked for, and after closing nothing happens any more', (t) => {
  const { keeper, clock, told } = kept({ connected: [ann] })
  keeper.want([ann])
  const before = told.refreshes
  keeper.refreshNow()
  t.is(told.refreshes, before + 1)
  keeper.close()
  keeper.want([bob])
  const after = { ...told, dialled: told.dialled.length }
  clock.advance(3_600_000)
  t.alike({ ...told, dialled: told.dialled.length }, after)
  t.is(clock.pending, 0)
})
