import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { giveBack } from '../../../../src/adapters/mesh/cores/given-back.js'
import { logCores } from '../../../../src/adapters/mesh/log/log-copy.js'
import {
  isShort,
  lengthOf,
  LOG_MARKS,
  LogMarks,
  type LogMarksDeps,
  readLogMarks
} from '../../../../src/adapters/mesh/log/log-marks.js'
import { keyFromText, keyToText, utf8 } from '../../../../src/kit/ids.js'
import type { MeshId } from '../../../../src/kit/ids.js'
import { FakeStore } from '../../../support/fake-store.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { tempDir } from '../../../support/tmp.js'

interface Scene {
  readonly core: Hypercore
  readonly store: Corestore
  readonly marks: LogMarks
  readonly documents: FakeStore
  readonly clock: ManualClock
  readonly meshId: MeshId
  /** The view of the log changed. */
  changed(): void
}

/** A log of one core, of two blocks. `marked`: how many were here once. */
async function scene(t: Assert, marked?: number): Promise<Scene> {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const core = store.get({ name: 'writer' })
  await core.ready()
  const meshId = keyToText(core.key) as MeshId
  await core.setUserData('referrer', keyFromText(meshId))
  await core.append([utf8('1'), utf8('2')])
  const [documents, clock] = [new FakeStore(), new ManualClock()]
  if (marked !== undefined) await documents.write(LOG_MARKS, { mesh: meshId, cores: { [meshId]: marked } })
  let changed = (): void => {}
  const log = { onChange: (listener: () => void) => ((changed = listener), () => {}) } as unknown as LogMarksDeps['log']
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  return {
    core,
    store,
    marks: new LogMarks({ store, documents, meshId, log, clock, telemetry }),
    documents,
    clock,
    meshId,
    changed: () => changed()
  }
}

test('entries that were missing are noticed once they are back, though nothing of the view changes', async (t: Assert) => {
  const { core, marks, clock } = await scene(t, 3)
  const isWhole = new Promise<void>((resolve) => marks.onChange(() => marks.problems().length === 0 && resolve()))
  await marks.start()
  t.is(marks.problems()[0]?.code, 'STORE_DAMAGED')
  clock.advance(200)
  while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve))
  await core.append([utf8('3')])
  clock.advance(1200)
  await isWhole
  t.alike(marks.problems(), [])
  await marks.close()
  t.is(clock.pending, 0, 'then nobody looks any more')
})

test('a home whose log has no marks gets them with its next start, and marks that the disk refused with the next change', async (t: Assert) => {
  const { marks, documents, clock, meshId, changed } = await scene(t)
  await marks.start()
  documents.fault = new Error('no room')
  clock.advance(200)
  await marks.close()
  t.is(await documents.read(LOG_MARKS), null)
  documents.fault = null
  changed()
  clock.advance(200)
  await marks.close()
  t.alike(await documents.read(LOG_MARKS), { mesh: meshId, cores: { [meshId]: 2 } })
  t.alike(marks.problems(), [])
})

test('a core of which this node removed blocks is never taken for shorter', async (t: Assert) => {
  const { core, marks, documents, meshId } = await scene(t, 2)
  await giveBack(core, 1)
  t.is(core.contiguousLength, 1)
  await marks.start()
  t.alike(marks.problems(), [])
  await marks.close()
  t.alike(await documents.read(LOG_MARKS), { mesh: meshId, cores: { [meshId]: 2 } })
})

test('a view that looked like the core of a writer for a moment is no loss, now and at later starts', async (t: Assert) => {
  const { core, store, marks, documents, clock, meshId, changed } = await scene(t)
  const view = store.get({ name: 'view' }) as Hypercore & { truncate(length: number): Promise<void> }
  await view.ready()
  await view.append([utf8('a'), utf8('b'), utf8('c')])
  await view.setUserData('referrer', core.key)
  await marks.start()
  clock.advance(200)
  await marks.close()
  t.is((await readLogMarks(documents, meshId))[keyToText(view.key)], 3)
  await view.setUserData('autobase/view', utf8('view'))
  // A new order of entries makes a view shorter.
  await view.truncate(1)
  changed()
  clock.advance(200)
  await marks.close()
  t.alike(marks.problems(), [])
  const lengths = new Map<string, number>()
  for await (const found of logCores(store, core.key)) {
    lengths.set(keyToText(found.core.key), await lengthOf(found))
    await found.core.close()
  }
  t.absent(isShort(await readLogMarks(documents, meshId), lengths), 'nor does doctor find one')
})
