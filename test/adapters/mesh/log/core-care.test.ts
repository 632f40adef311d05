import test from 'brittle'
import { CoreCare, type CoreCareDeps, readCare } from '../../../../src/adapters/mesh/log/core-care.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { repairCores } from '../../../../src/maintenance/doctor-cores.js'
import { FakeStore } from '../../../support/fake-store.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, founded } from '../../../support/membership.js'

const [owner, ann] = [actor('owner'), actor('ann')]
const telemetry = new MemoryTelemetry({ clock: new ManualClock(), level: null, format: 'text', write: () => {} })
const mesh = { key: owner.coreKey, owner: owner.id }

function begin(documents: FakeStore, of: CoreCareDeps['mesh'] = mesh): Promise<CoreCare> {
  return CoreCare.begin({ documents, telemetry, mesh: of })
}

/** Starts that end while they read cores. */
async function failing(documents: FakeStore, count: number): Promise<void> {
  for (let start = 0; start < count; start++) {
    const care = await begin(documents)
    for (const core of [owner.coreKey, ann.coreKey]) await care.mayRead(core)
  }
}

test('the third start in a row that did not come up leaves out what the second read of others, the fourth also the core of the owner', async (t) => {
  const documents = new FakeStore()
  await failing(documents, 1)
  t.alike((await readCare(documents)).reading, [], 'a first start that fails may have another reason')
  await failing(documents, 1)
  t.alike((await readCare(documents)).reading, [owner.coreKey, ann.coreKey])
  const third = await begin(documents)
  t.alike(third.leftOut(), [ann.coreKey])
  t.alike([await third.mayRead(ann.coreKey), await third.mayRead(owner.coreKey)], [false, true])
  const fourth = await begin(documents)
  t.alike(fourth.leftOut(), [ann.coreKey, owner.coreKey])
})

test('a successful start, and a failed one with a reported error, are not counted', async (t) => {
  const documents = new FakeStore()
  await failing(documents, 1)
  for (let start = 0; start < 5; start++) await (await begin(documents)).close()
  t.is((await readCare(documents)).failed, 1)
  t.alike((await begin(documents)).leftOut(), [])
  const log = founded()
  log.join(owner, ann, { admin: true })
  const third = await begin(documents)
  await third.up(log.view())
  await third.close()
  t.is((await readCare(documents)).failed, 0)
  await failing(documents, 2)
  const last = await begin(documents)
  await last.up(log.view())
  const { failed, leftOut, owners } = await readCare(documents)
  t.alike([failed, leftOut, owners], [0, [ann.coreKey], { [ann.coreKey]: ann.id }])
  t.alike((await begin(documents, null)).leftOut(), [], 'another mesh begins anew')
})

test('a core that is left out is tried again by the next start; one that ends there is enough to leave it out, and a repair does for good', async (t) => {
  const documents = new FakeStore()
  const log = founded()
  const starts = async (): Promise<readonly string[]> => {
    const care = await begin(documents)
    await care.mayRead(ann.coreKey)
    await care.up(log.view())
    await care.close()
    return care.leftOut()
  }
  await failing(documents, 2)
  t.alike(await starts(), [ann.coreKey])
  await failing(documents, 1)
  t.alike(await starts(), [ann.coreKey], 'it ended there again')
  t.alike(await starts(), [], 'this one did not')
  await failing(documents, 1)
  t.alike(await starts(), [], 'so it takes two again')
  await failing(documents, 2)
  t.alike(
    (await repairCores(documents, mesh)).map(({ name }) => name),
    ['cores']
  )
  t.alike([await starts(), await starts()], [[ann.coreKey], [ann.coreKey]])
  await repairCores(documents, mesh)
  t.alike(await starts(), [])
  t.alike(await repairCores(documents, mesh), [])
})

test('cores that are set aside are remembered with whose they are', async (t) => {
  const documents = new FakeStore()
  const care = await begin(documents)
  const fault = { code: 'OVERLOADED', reason: 'it is over its share' } as const
  care.setAside(ann.coreKey, fault, ann.id)
  care.setAside(ann.coreKey, { code: 'MALFORMED', reason: 'another' }, null)
  await care.close()
  const { setAside, owners } = await readCare(documents)
  t.alike([setAside, owners], [{ [ann.coreKey]: fault }, { [ann.coreKey]: ann.id }])
  await (await begin(documents)).close()
  t.alike((await readCare(documents)).setAside, {}, 'until the next start, which finds them anew')
})
