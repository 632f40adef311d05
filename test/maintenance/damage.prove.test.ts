import test from 'brittle'
import { damageScene, runDamages, WAYS } from '../support/damage.js'

/** Damages that are looked at at once. */
const AT_ONCE = 3

test('for any damaged file of a stopped home its content is served unchanged, or the damage is reported and a repair helps', async (t) => {
  t.timeout(240_000)
  const scene = await damageScene(t)
  const seed = Math.floor(Math.random() * WAYS.length)
  t.comment(`seed ${seed}; all ways: node scripts/storm/damage.mjs`)
  const cases = scene.files.map((place, number) => ({ ...place, way: WAYS[(number + seed) % WAYS.length] ?? 'cut' }))
  t.ok(
    cases.some(({ file }) => file.startsWith('documents/db/') && file.endsWith('.blob')),
    'large blocks of documents'
  )
  for (const part of ['ledger/', 'documents/db/', 'store/db/', 'audit/', 'tokens.json'])
    t.ok(
      cases.some(({ file }) => file.startsWith(part)),
      part
    )
  t.ok(
    cases.some(({ of, file }) => of === 'killed' && file.startsWith('documents/db/')),
    'logs of documents'
  )
  await runDamages(scene, cases, {
    atOnce: AT_ONCE,
    onResult: ({ of, file, way, outcome, fault }) => t.is(fault, null, `${of}/${file} ${way}: ${outcome}`)
  })
})
