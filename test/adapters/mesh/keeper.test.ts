import test from 'brittle'
import { Keeper, type KeptSwarm } from '../../../src/adapters/mesh/keeper.js'
import { keyFromText, keyToText, type NodeId } from '../../../src/kit/ids.js'
import { ManualClock } from '../../support/manual-clock.js'
import { actor } from '../../support/membership.js'

const ann = actor('ann').id
const bob = actor('bob').id

/** A keeper over a swarm that only writes down what it is told. */
function kept({ connected = [], places = 64 }: { connected?: readonly NodeId[]; places?: number } = {}) {
  const clock = new ManualClock()
  const links = new Set(connected)
  const told = { dialled: [] as NodeId[], left: [] as NodeId[], refreshes: 0, announces: 0 }
  const peers = new Map<string, { banned: boolean; attempts: number; ban(banned: boolean): void }>()
  const swarm = {
    peers,
    joinPeer: (key: Uint8Array) => void told.dialled.push(keyToText(key)),
    leavePeer: (key: Uint8Array) => void told.left.push(keyToText(key)),
    topics: () =>
      [
        {
          refresh: () => {
            told.refreshes++
            return Promise.resolve(true)
          }
        }
      ].values(),
    server: { refresh: () => void told.announces++ }
  } as unknown as KeptSwarm
  const keeper = new Keeper({
    swarm,
    clock,
    networkKind: 'local',
    chance: () => 0.5,
    isConnected: (peer) => links.has(peer),
    linkCount: () => links.size,
    hasRoom: () => links.size < places
  })
  return { keeper, clock, links, told, peers }
}

test('a wanted member without a link is dialled at once, one that has a link is not', (t) => {
  const { keeper, told } = kept({ connected: [bob] })
  keeper.want([ann, bob])
  t.alike(told.dialled, [ann])
  t.ok(keeper.wants(ann))
  t.absent(keeper.wants(actor('eve').id))
})

test('a member that stays away is dialled again and again, at growing waits, and discovery is refreshed', (t) => {
  const { keeper, clock, told } = kept()
  keeper.want([ann])
  clock.advance(60_000)
  const minute = told.dialled.length
  t.ok(minute >= 15 && minute <= 20, `${minute} dials in the first minute`)
  t.ok(told.refreshes >= 12, `${told.refreshes} refreshes in the first minute`)
  t.is(told.announces, told.refreshes, 'the server is announced with each')
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

test('who is lost a second time is dialled as fast as at the first', (t) => {
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

test('a key that the swarm banned or gave up is dialled all the same', (t) => {
  const { keeper, peers } = kept()
  const info = {
    banned: true,
    attempts: 9,
    ban(banned: boolean) {
      this.banned = banned
    }
  }
  peers.set(Buffer.from(keyFromText(ann)).toString('hex'), info)
  keeper.want([ann])
  t.is(info.banned, false)
  t.is(info.attempts, 0)
})

test('who is wanted no more is left alone', (t) => {
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
