import { median } from '../bench/figures.mjs'

/** Most that the median of the last third may be above that of the second: a share of it, and so much more. */
const BOUNDS = {
  rssMB: { share: 0.05, more: 8 },
  heapMB: { share: 0.05, more: 4 },
  externalMB: { share: 0.05, more: 4 },
  descriptors: { share: 0, more: 8 },
  timers: { share: 0.1, more: 16 }
}

/** A line for each quantity that was sampled of a process, and whether it grew. */
export function verdicts(name, samples) {
  const third = Math.floor(samples.length / 3)
  const known = Object.entries(BOUNDS).filter(([what]) => samples[0]?.[what] !== undefined)
  return known.map(([what, { share, more }]) => {
    const of = (from, to) => median(samples.slice(from, to).map((one) => one[what]))
    const [before, after] = [of(third, 2 * third), of(2 * third)]
    const grows = !(after <= before * (1 + share) + more)
    return {
      grows,
      line: `${name} ${what}: ${of(0, third).toFixed(1)}, ${before.toFixed(1)}, ${after.toFixed(1)} by thirds${grows ? '  GROWS' : ''}`
    }
  })
}
