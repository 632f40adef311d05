import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { isGivenBack } from '../../../../src/adapters/mesh/cores/given-back.js'
import { RevokedCores } from '../../../../src/adapters/mesh/log/revoked-cores.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { keyFromText, keyToText, utf8 } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, founded } from '../../../support/membership.js'
import { tempDir } from '../../../support/tmp.js'

const [owner, ann, bob] = [actor('owner'), actor('ann'), actor('bob')]

/**
 * A core of four blocks of a member, of which the order of the log has `needed`; null: its revocation is not signed.
 */
async function scene(t: Assert) {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const core: Hypercore = store.get({ name: 'writer' })
  await core.ready()
  await core.append(['1', '2', '3', '4'].map(utf8))
  const log = founded()
  log.join(owner, ann, { admin: true })
  log.join(owner, bob)
  log.write(ann, { kind: 'core', mesh: log.view().mesh?.id ?? '', coreKey: keyToText(core.key), serial: 1 })
  const clock = new ManualClock()
  const world = { needed: null as number | null, asked: [] as string[] }
  const waiting = new Set<() => void>()
  const revoked = new RevokedCores({
    self: bob.coreKey,
    clock,
    telemetry: new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} }),
    open: (key) => store.get({ key: keyFromText(key), writable: false }),
    needed: (member, key) => {
      world.asked.push(member)
      for (const tell of [...waiting]) tell()
      return Promise.resolve(key === keyToText(core.key) ? world.needed : 0)
    }
  })
  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (isSo()) resolve()
      }
      waiting.add(look)
      look()
    })
  const held = async (): Promise<boolean[]> => await Promise.all([0, 1, 2, 3].map((at) => core.has(at)))
  return { core, log, clock, world, revoked, held, until }
}

test('entries of a revoked member beyond the order of the log are removed once the owner has signed the revocation', async (t) => {
  const { core, log, clock, world, revoked, held, until } = await scene(t)
  log.revoke(owner, ann)
  log.revoke(owner, bob)
  revoked.review(log.view())
  await until(() => world.asked.length >= 2)
  t.alike(await held(), [true, true, true, true])
  world.needed = 2
  const before = world.asked.length
  clock.advance(3000)
  await until(() => world.asked.length > before)
  await revoked.close()
  t.alike(await held(), [true, true, false, false])
  t.ok(await isGivenBack(core))
  t.absent(world.asked.includes(bob.id), 'the own core stays as it is')
  t.is(clock.pending, 0)
})

test('cores of members that are not revoked stay, and one without anything to remove is not marked', async (t) => {
  const { core, log, world, revoked, held, until } = await scene(t)
  world.needed = 4
  revoked.review(log.view())
  log.revoke(owner, ann)
  revoked.review(log.view())
  await until(() => world.asked.length >= 2)
  await revoked.close()
  t.alike(await held(), [true, true, true, true])
  t.absent(await isGivenBack(core))
})
