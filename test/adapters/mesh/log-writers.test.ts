import test from 'brittle'
import { type Claim, claimOf, LogWriters } from '../../../src/adapters/mesh/log-writers.js'
import { encodeEntry } from '../../../src/domain/membership/codec.js'
import { seal } from '../../../src/domain/membership/signing.js'
import type { Entry } from '../../../src/domain/membership/types.js'
import { demand } from '../../support/demand.js'
import { type Actor, actor, founded, keyText, type LogModel, MESH } from '../../support/membership.js'

const owner = actor('owner')

function claim(by: Actor, core: string, serial = 1): Claim {
  const entry: Entry = seal('entry', { kind: 'core' as const, mesh: MESH, coreKey: keyText(core), serial }, by)
  const made = claimOf(entry, encodeEntry(entry))
  demand(made !== null, 'a claim')
  return made
}

/** Writers of a log whose members' claims hold; what it tells of them, and to whom not. */
function world(log: LogModel = founded()): { writers: LogWriters; claimed: string[][]; log: LogModel } {
  const claimed: string[][] = []
  const writers = new LogWriters({
    isValid: ({ entry }) => Promise.resolve(log.view().members.has(entry.by)),
    onClaim: ({ coreKey }, from) => void claimed.push([coreKey, from])
  })
  return { writers, claimed, log }
}

test('cores of members and writers are known, cores of others are not', async (t) => {
  const { writers, log } = world()
  await writers.review(log.view())
  t.alike(
    [owner.coreKey, MESH, keyText('core/of nobody')].map((core) => writers.isWriter(core)),
    [true, true, false]
  )
})

test('a claim that holds is taken once, and told with who sent it', async (t) => {
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
  for (const one of members) for (let at = 0; at < 9; at++) await writers.offer(claim(one, `${one.id}/${at}`, at + 1), 'peer')
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

test('a core with a bad block is told once, also to who asks later', (t) => {
  const { writers } = world()
  const told: string[][] = []
  writers.onBadBlock('core', 'why')
  writers.onBad((core, reason) => void told.push([core, reason]))
  writers.onBadBlock('core', 'again')
  t.alike(told, [['core', 'why']])
  t.alike([writers.badBlock('core'), writers.badBlock('other')], ['why', null])
})
