// Runs the cases and the clients of A2A against real nodes.
import { bundle } from '../testing/bundle.mjs'
import { compile, compileTests } from '../testing/compile.mjs'

/** Prints the results. Resolves with whether all went as expected. */
export async function conformsToA2A() {
  if (!compile()) throw new Error('the sources do not compile')
  await bundle()
  const { conform } = await compileTests('test/conformance/a2a/main.js')
  const ends = []
  try {
    const report = await conform({ teardown: (end) => ends.unshift(end) })
    for (const line of report.lines) console.log(line)
    console.log(`\n${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`)
    return report.isGood
  } finally {
    for (const end of ends) await end()
  }
}
