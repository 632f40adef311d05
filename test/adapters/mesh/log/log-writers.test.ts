import test from 'brittle'
import { type WriterClaim, claimOf, LogWriters } from '../../../../src/adapters/mesh/log/log-writers.js'
import { LOG_SHARE_LIMITS } from '../../../../src/domain/membership/log-share.js'
import type { CoreFault } from '../../../../src/adapters/mesh/log/guarded-base.js'
import { encodeEntry } from '../../../../src/domain/membership/codec.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { Entry } from '../../../../src/domain/membership/types.js'
import { demand } from '../../../support/demand.js'
import { type Actor, actor, founded, keyText, type LogModel, MESH } from '../../../support/membership.js'

const owner = actor('owner')

function claim(by: Actor, core: string, serial = 1): WriterClaim {
  const entry: Entry = seal('entry', { kind: 'core' as const, mesh: MESH, coreKey: keyText(core), serial }, by)
  const made = claimOf(entry, encodeEntry(entry))
  demand(made !== null, 'a claim')
  return made
}

/** Writers of a log whose members' claims hold; what it tells of them, and to whom not. */
function world(log: LogModel = founded()): {
  writers: LogWriters
  claimed: string[][]
  log: LogModel
  read: { count: number }
} {
  const read = { count: 0 }
  const claimed: string[][] = []
  const writers = new LogWriters({
    isValid: ({ entry }) => Promise.resolve(log.view().members.has(entry.by)),
    onClaim: ({ coreKey }, from) => void claimed.push([coreKey, from]),
    onLimits: () => void read.count++
  })
  return { writers, claimed, log, read }
}

test('cores of members and writers are known, cores of others are not', async (t) => {
  const { writers, log } = world()
  await writers.review(log.view())
  t.alike(
    [owner.coreKey, MESH, keyText('core/of nobody')].map((core) => writers.isWriter(core)),
    [true, true, false]
  )
})

test('a valid claim is accepted once, and reported with its sender', async (t) => {
  const { writers, claimed, log } = world()
  await writers.review(log.view())
  const one = claim(owner, 'core/again')
  await writers.offer(one, 'peer')
  await writers.offer(one, 'other')
  t.alike(claimed, [[one.coreKey, 'peer']])
  t.alike([writers.isClaimed(one.coreKey), writers.isWriter(one.coreKey), writers.claims()], [true, true, [one.bytes]])
})

test('a claim of one that is no member yet waits for its admission, four from each peer; that of a member which does not hold does not', async (t) => {
  const log = founded()
  const late = Array.from({ length: 6 }, (_, at) => actor(`late${at}`))
  const { writers, claimed } = world(log)
  await writers.review(log.view())
  for (const one of late) await writers.offer(claim(one, `core/of ${one.id}`), 'peer')
  t.alike(claimed, [])
  for (const one of late) log.join(owner, one)
  await writers.review(log.view())
  t.alike(
    claimed.map(([core]) => core),
    late.slice(0, 4).map((one) => keyText(`core/of ${one.id}`))
  )
})

test('one member has at most eight claims, all together 64', async (t) => {
  const log = founded()
  const members = Array.from({ length: 10 }, (_, at) => actor(`member${at}`))
  for (const one of members) log.join(owner, one)
  const { writers } = world(log)
  for (const one of members)
    for (let at = 0; at < 9; at++) await writers.offer(claim(one, `${one.id}/${at}`, at + 1), 'peer')
  t.is(writers.claims().length, 64)
  t.alike(
    [0, 7, 8].map((at) => writers.isClaimed(keyText(`${members[0]?.id}/${at}`))),
    [true, true, false]
  )
})

test('the first block of a core speaks for that core alone, and anything else in it is no claim', (t) => {
  const { writers } = world()
  const one = claim(owner, 'core/mine')
  writers.remember(keyText('core/another'), one.bytes)
  writers.remember(keyText('core/another'), new Uint8Array(40).fill(123))
  t.alike(writers.claims(), [])
  writers.remember(one.coreKey, one.bytes)
  t.alike(writers.claims(), [one.bytes])
})

test('a core with a bad block is reported once, also to later listeners', (t) => {
  const { writers } = world()
  const told: [string, CoreFault][] = []
  const [why, again] = ['why', 'again'].map((reason) => ({ code: 'MALFORMED', reason }) as const) as [
    CoreFault,
    CoreFault
  ]
  writers.onBadBlock('core', why)
  writers.onBad((core, fault) => void told.push([core, fault]))
  writers.onBadBlock('core', again)
  t.alike(told, [['core', why]])
  t.alike([writers.badBlock('core'), writers.badBlock('other')], [why, null])
})

test('cores of members have a limit, also former ones; those of the owner have none, also when a member claims one of them', async (t) => {
  const [ann, eve] = [actor('ann'), actor('eve')]
  const { writers, log } = world()
  log.join(owner, ann, { admin: true })
  log.join(owner, eve)
  log.write(ann, { kind: 'core', mesh: MESH, coreKey: keyText('core/next'), serial: 1 })
  log.write(owner, { kind: 'core', mesh: MESH, coreKey: keyText('core/restored'), serial: 1 })
  t.is(log.write(eve, { kind: 'core', mesh: MESH, coreKey: owner.coreKey, serial: 1 }).skipped, null)
  await writers.review(log.view())
  const limited = { bytes: LOG_SHARE_LIMITS.maxBytes, isKnown: true, isRevoked: false }
  for (const core of [ann.coreKey, keyText('core/next'), eve.coreKey]) t.alike(writers.limitOf(core), limited)
  for (const core of [owner.coreKey, keyText('core/restored'), MESH])
    t.alike(writers.limitOf(core), { bytes: Number.POSITIVE_INFINITY, isKnown: true, isRevoked: false })
  t.alike(writers.limitOf(keyText('core/of nobody')), { ...limited, isKnown: false })
})

test('a core that waits for its owner to be named is read on once, when the view names it', async (t) => {
  const { writers, log, read } = world()
  writers.onWaiting(keyText('core/next'))
  await writers.review(log.view())
  t.is(read.count, 0)
  log.write(owner, { kind: 'core', mesh: MESH, coreKey: keyText('core/next'), serial: 1 })
  await writers.review(log.view())
  await writers.review(log.view())
  t.is(read.count, 1)
})
