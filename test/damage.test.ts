import test from 'brittle'
import { damageScene, runDamages, WAYS } from './support/damage.js'

/** Damages that are looked at at once. */
const AT_ONCE = 3

test('whatever file of a stopped home is damaged: what it held is served as it was, or it is told, and a repair helps', async (t) => {
  t.timeout(240_000)
  const scene = await damageScene(t)
  const seed = Math.floor(Math.random() * WAYS.length)
  t.comment(`seed ${seed}; all ways: node scripts/prove/damage.mjs`)
  const cases = scene.files.map((file, place) => ({ file, way: WAYS[(place + seed) % WAYS.length] ?? 'cut' }))
  t.ok(cases.some(({ file }) => file.startsWith('ledger/')) && cases.some(({ file }) => file.startsWith('documents/db/')))
  await runDamages(scene, cases, {
    atOnce: AT_ONCE,
    onResult: ({ file, way, outcome, fault }) => t.is(fault, null, `${file} ${way}: ${outcome}`)
  })
})
