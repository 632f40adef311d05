import test from 'brittle'
import { fuzz, fuzzTargets } from './support/fuzz.js'

/** Inputs a reader; `npm run fuzz` tries a million. */
const SHARE = 4000

for (const target of fuzzTargets()) {
  test(`no bytes of a peer break the reader of ${target.name}`, (t) => {
    const { inputs, taken } = fuzz(target, SHARE)
    t.ok(inputs >= SHARE)
    // Both ways must have been gone: samples alone, or refusals alone, would prove little.
    t.ok(taken > 0 && taken < inputs, `${taken} of ${inputs} were taken`)
  })
}
