import test, { type Assert } from 'brittle'
import type { FoldResult } from '../../../src/domain/membership/fold/fold.js'
import { SERIAL_MAX_STEP } from '../../../src/domain/membership/serial.js'
import type { MeshSettings } from '../../../src/domain/membership/types.js'
import { type Actor, actor, founded, MESH } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')

test('the owner alone sets what holds for the mesh, and the newest counts', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  t.is(log.view().settings, null, 'as shipped')
  const settings = (from: 0 | 1 | 2 | 3): MeshSettings => ({
    tierRules: [{ sourceTier: from, allowedTargetTiers: [3], requiresEscalationJustification: false }],
    sandbox: { enforced: true, crossSandboxAllowList: ['text'] }
  })
  const set = (by: Actor, serial: number, value: MeshSettings): FoldResult =>
    log.write(by, { kind: 'settings', mesh: MESH, settings: value, serial, at: 1000 + serial })
  t.is(set(ann, 1, settings(0)).skipped, 'only the owner changes settings of the mesh')
  t.is(set(owner, 2, settings(1)).skipped, null)
  t.alike(log.view().settings, { settings: settings(1), serial: 2, at: 1002 })
  t.is(set(owner, 1, settings(2)).skipped, 'a newer one is known')
  t.is(set(owner, 2, settings(2)).skipped, 'a newer one is known')
  t.is(set(owner, 3, settings(3)).skipped, null)
  t.alike(log.view().settings?.settings, settings(3))
  t.ok(set(owner, 3 + SERIAL_MAX_STEP + 1, settings(0)).skipped, 'numbers cannot be used up')
})
