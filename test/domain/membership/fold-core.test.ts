import test from 'brittle'
import { actor, founded, keyText, MESH, type Actor, type LogModel } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')

function claim(log: LogModel, by: Actor, core: string, serial = 1): string | null {
  return log.write(by, { kind: 'core', mesh: MESH, coreKey: keyText(core), serial }).skipped
}

test('a writer goes on with another core at its place in the line, and the former one writes no more', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  t.is(claim(log, owner, 'core/restored'), null)
  t.alike(log.view().writers.active, [keyText('core/restored'), ann.coreKey])
  t.alike(log.writers, new Set([ann.coreKey, keyText('core/restored')]))
  t.is(log.view().members.get(owner.id)?.coreKey, keyText('core/restored'))
  t.is(log.view().members.get(owner.id)?.coreSerial, 1)
})

test('a member that may not write changes its record only', (t) => {
  const log = founded()
  log.join(owner, bob)
  t.is(claim(log, bob, 'core/restored'), null)
  t.is(log.view().members.get(bob.id)?.coreKey, keyText('core/restored'))
  t.alike(log.view().writers.active, [owner.coreKey])
  t.alike(log.writers, new Set([owner.coreKey]))
})

test('only a newer number counts, so that no former home comes back by an old entry', (t) => {
  const log = founded()
  t.is(claim(log, owner, 'core/second', 2), null)
  t.is(claim(log, owner, 'core/first', 1), 'a newer one is known')
  t.is(claim(log, owner, 'core/another', 2), 'a newer one is known')
  t.ok(claim(log, owner, 'core/far', 2_000_000)?.startsWith('its serial is more than'))
  t.is(log.view().members.get(owner.id)?.coreKey, keyText('core/second'))
})

test('no member takes the core of another writer, and a revoked node or stranger takes none', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const body = { kind: 'core', mesh: MESH, coreKey: owner.coreKey, serial: 1 } as const
  t.is(log.write(ann, body).skipped, 'the core is that of another writer')
  t.is(claim(log, bob, 'core/bob'), 'its author is no member')
  log.revoke(owner, ann)
  t.is(claim(log, ann, 'core/back'), 'its author is revoked')
  t.alike(log.writers, new Set([owner.coreKey]))
})

test('a member has eight cores in its life, and may go back to one of them; the owner has as many as it needs', (t) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  for (const by of [ann, owner]) for (let at = 1; at < 8; at++) t.is(claim(log, by, `core/${by.name}/${at}`, at), null)
  t.is(claim(log, ann, 'core/ann/8', 8), 'the node had 8 cores already')
  t.is(claim(log, owner, 'core/owner/8', 8), null)
  t.is(claim(log, ann, 'core/ann/3', 9), null)
  const { coreKey, formerCores } = log.view().members.get(ann.id) ?? {}
  t.is(coreKey, keyText('core/ann/3'))
  t.is(formerCores?.length, 7)
  t.absent(formerCores?.includes(keyText('core/ann/3')))
})
