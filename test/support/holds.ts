import type { Assert } from 'brittle'
import fc from 'fast-check'

/**
 * Runs a property and asserts that it holds; a failure says the seed, the smallest counterexample and what was wrong
 * with it.
 */
export async function holds<T>(
  t: Assert,
  property: fc.IProperty<T> | fc.IAsyncProperty<T>,
  numRuns = 200
): Promise<void> {
  const result = await fc.check(property, { numRuns, includeErrorInReport: true })
  if (result.failed) t.fail(fc.defaultReportMessage(result) ?? 'the property does not hold')
  else t.pass(`${result.numRuns} runs`)
}
