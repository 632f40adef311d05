import test, { type Assert } from 'brittle'
import Corestore from 'corestore'
import { LOG_MARKS, LogMarks, type LogMarksParts } from '../../../src/adapters/mesh/log-marks.js'
import { keyFromText, keyToText, utf8 } from '../../../src/kit/ids.js'
import type { MeshId } from '../../../src/kit/ids.js'
import { FakeStore } from '../../support/fake-store.js'
import { ManualClock } from '../../support/manual-clock.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { tempDir } from '../../support/tmp.js'

test('a home whose log has no marks gets them with its next start, and what the disk did not take with the next change', async (t: Assert) => {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const core = store.get({ name: 'writer' })
  await core.ready()
  const meshId = keyToText(core.key) as MeshId
  await core.setUserData('referrer', keyFromText(meshId))
  await core.append([utf8('1'), utf8('2')])
  const [documents, clock] = [new FakeStore(), new ManualClock()]
  let changed = (): void => {}
  const log = { onChange: (listener: () => void) => ((changed = listener), () => {}) } as unknown as LogMarksParts['log']
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const marks = new LogMarks({ store, documents, meshId, log, clock, telemetry })
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
