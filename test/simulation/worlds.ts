import { Simulation } from './simulation.js'

/** Lines of a trace that are shown of a world that went wrong. */
const SHOWN = 60

/** Lets the world of a seed happen; what went wrong in it, with the last of its trace, or null. */
export async function faultOf(seed: number): Promise<string | null> {
  const { fault, trace } = await new Simulation(seed).run()
  if (fault === null) return null
  return `world ${seed}: ${fault}\n${trace.text(SHOWN)}\nagain, alone: npm run simulate -- --seed ${seed}`
}

/** What went wrong in the first bad one of several worlds, or null. */
export async function firstFault(seeds: { readonly from: number; readonly count: number }): Promise<string | null> {
  for (let seed = seeds.from; seed < seeds.from + seeds.count; seed++) {
    const fault = await faultOf(seed)
    if (fault !== null) return fault
  }
  return null
}

/** Everything that happens in the world of a seed. */
export async function traceOf(seed: number): Promise<string> {
  const { trace } = await new Simulation(seed).run()
  return trace.text()
}
