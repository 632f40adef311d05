import test, { type Assert } from 'brittle'
import { wait } from '../../../src/kit/clock.js'
import type { CallName, Calls } from '../../../src/ports/node-api.js'
import { documentScene, write } from '../../support/document-scene.js'
import { failsWith } from '../../support/fails.js'
import { World } from '../../support/fake-node.js'

const GIVEN = { timeoutMs: 42_000 }

test('each change of the mesh log waits as long as its caller says', async (t: Assert) => {
  const { world, owner } = await documentScene(t)
  const api = owner.api()
  const { id } = await api.call('invite.create', { trust: 'mine' })
  await api.call('documents.create', { name: 'mine' })
  const everybody = { see: {}, write: {} }
  const changes: { [N in CallName]?: Calls[N]['params'] } = {
    'peers.rename': { peer: 'bob', name: 'rob' },
    'peers.tier': { peer: 'rob', tier: 3 },
    'peers.revoke': { peer: 'rob' },
    'invite.create': {},
    'invite.revoke': { id },
    'mesh.set': { sandboxes: { enforced: true, allow: ['text'] } },
    'documents.create': { name: 'other' },
    'documents.restrict': { document: 'mine', ...everybody },
    'documents.remove': { document: 'mine' }
  }
  for (const [name, params] of Object.entries(changes) as [CallName, Calls[CallName]['params']][]) {
    const before = world.log.waits.length
    await api.call(name, params, GIVEN)
    t.ok(world.log.waits.slice(before).includes(42_000), name)
  }
  const before = world.log.waits.length
  await api.call('documents.create', { name: 'third' })
  t.absent(world.log.waits.slice(before).includes(42_000), 'the next call has the default again')
})

test('a document that still arrives is waited for as long as the caller says, and no longer', async (t: Assert) => {
  const { world, owner, ann, bob } = await documentScene(t)
  await write(owner.api(), 'of the owner')
  await world.settle()
  const late = await world.member('late')
  const announced = new Set([owner.id, ann.id, bob.id])
  let fetched = 0
  Object.assign(late.core.deps.documents, {
    size: () => ({ blocks: 0, from: 0, bytes: 0 }),
    extent: () => ({ blocks: 1000, isMore: true, announced, fetched: fetched++ })
  })
  await world.link(owner, ann, bob, late)
  await world.settle()
  const read = { document: 'notes', type: 'text' } as const
  const edit = { document: 'notes', edit: { type: 'text', text: 'a' } } as const
  const calls = {
    read: (timeoutMs: number) => late.api().call('documents.read', read, { timeoutMs }),
    edit: (timeoutMs: number) => late.api().call('documents.edit', edit, { timeoutMs })
  }
  for (const [name, call] of Object.entries(calls)) {
    for (const timeoutMs of [1000, 40_000]) {
      let hasEnded = false
      const failing = failsWith(t, 'TIMEOUT', () => call(timeoutMs).finally(() => (hasEnded = true)))
      await world.pass(timeoutMs - 500, 500)
      t.absent(hasEnded, `${name} still waits before ${timeoutMs} ms`)
      await world.pass(1000, 500)
      const { data, message } = await failing
      t.alike(data, { timeoutMs })
      t.ok(message.includes('still being transferred'), message)
    }
  }
})

test('a caller with little time learns that every node with the document is offline, as one with more time does', async (t: Assert) => {
  const { world, owner } = await documentScene(t)
  await write(owner.api(), 'of the owner')
  await world.settle()
  const late = await world.member('late')
  for (const timeoutMs of [1000, 40_000]) {
    const read = { document: 'notes', type: 'text' } as const
    const failing = failsWith(t, 'PEER_OFFLINE', () => late.api().call('documents.read', read, { timeoutMs }))
    await world.pass(4000, 500)
    const { message } = await failing
    t.ok(message.includes('every node that has it is offline'), message)
  }
})

test('the time of a ping is also that of the link that it opens', async (t: Assert) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  await world.settle()
  const given: number[] = []
  const { clock, links } = a.core.deps
  links.dial = async (peer, timeoutMs) => {
    given.push(timeoutMs)
    await wait(clock, 400)
    const [here, there] = world.net.connect(a.id, peer)
    there.isHeld = true
    return here
  }
  let hasEnded = false
  const ping = (): Promise<unknown> =>
    a
      .api()
      .call('peers.ping', { peer: b.id }, { timeoutMs: 700 })
      .finally(() => (hasEnded = true))
  const failing = failsWith(t, 'TIMEOUT', ping)
  await world.pass(700, 100)
  t.ok(hasEnded, 'it ends in time')
  await world.pass(1000, 100)
  await failing
  t.alike(given, [700])
})

test('the time of a ping is that of all its answers together', async (t: Assert) => {
  const world = new World(t)
  const [a, b] = [await world.member('a'), await world.member('b')]
  const [, there] = world.net.connect(a.id, b.id)
  await world.settle()
  there.isHeld = true
  const failing = failsWith(t, 'TIMEOUT', () => a.api().call('peers.ping', { peer: 'b', count: 3 }, { timeoutMs: 700 }))
  await world.settle()
  await world.pass(700, 100)
  const { message, data } = await failing
  t.is(message, 'b: no answer to the ping within 700 ms, after 0 of 3 answers; no further ping is sent')
  t.alike(data, { timeoutMs: 700 })
})
