#!/usr/bin/env node
// Damages every file of a stopped home, and every log of one whose node was killed, in every way (one bit turned over
// in the middle, cut in half, zeroed), one at a time, and looks at what a start, its API, `doctor` and
// `doctor --repair` make of it: `node scripts/storm/damage.mjs [--only PART] [--at-once N]
// [--json]`. `--only`: files whose path (`stopped/...`, `killed/...`) has this part. Exit code 0 when everything was
// served as it was, or told, and could be repaired. `npm run prove` does one way of each file.
import { parseArgs } from 'node:util'
import { compileTests } from '../testing/compile.mjs'

async function main() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      'at-once': { type: 'string', default: '3' },
      json: { type: 'boolean', default: false }
    }
  })
  const { damageScene, runDamages, WAYS } = await compileTests('test/support/damage.js')
  const ends = []
  try {
    const scene = await damageScene({ teardown: (end) => void ends.push(end) })
    const files = scene.files.filter(({ of, file }) => `${of}/${file}`.includes(values.only))
    const cases = files.flatMap((place) => WAYS.map((way) => ({ ...place, way })))
    const results = []
    await runDamages(scene, cases, {
      atOnce: Number(values['at-once']),
      onResult: (result) => {
        results.push(result)
        if (!values.json) console.log(`${result.of}/${result.file} ${result.way}: ${result.fault ?? result.outcome}`)
      }
    })
    const faults = results.filter(({ fault }) => fault !== null)
    if (values.json) console.log(JSON.stringify({ ok: faults.length === 0, results }))
    else console.log(`${files.length} files, ${results.length} cases: ${faults.length} faults`)
    process.exitCode = faults.length === 0 && results.length > 0 ? 0 : 1
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

await main()
