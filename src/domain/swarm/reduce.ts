import { isRecord } from '../../kit/json.js'

/** Reducers of several results that need no agent. */
export const REDUCERS = ['concat', 'merge', 'count', 'first'] as const

/** One of {@link REDUCERS}. */
export type Reducer = (typeof REDUCERS)[number]

/** Levels of objects that are merged; below them the later one counts. */
const MERGE_DEPTH = 16

/** Is it the name of a reducer, not that of a capability? */
export function isReducer(name: string): name is Reducer {
  return REDUCERS.some((one) => one === name)
}

/**
 * Reduces the results of a swarm to one, in the order of its items. `concat`: texts become one, a line each; else a
 * list, with the members of lists. `merge`: objects become one, later ones count, and other values are left out;
 * without any object it is `concat`. `count`: their number. `first`: the first; undefined for none.
 */
export function reduceResults(reducer: Reducer, results: readonly unknown[]): unknown {
  switch (reducer) {
    case 'concat':
      return results.length > 0 && results.every((one) => typeof one === 'string')
        ? results.join('\n')
        : results.flat(1)
    case 'merge': {
      const objects = results.filter(isRecord)
      if (objects.length === 0 && results.length > 0) return reduceResults('concat', results)
      return objects.reduce((merged, one) => merge(merged, one, MERGE_DEPTH), {})
    }
    case 'count':
      return results.length
    case 'first':
      return results[0]
  }
}

function merge(into: Record<string, unknown>, from: Record<string, unknown>, depth: number): Record<string, unknown> {
  const merged = new Map(Object.entries(into))
  for (const [key, value] of Object.entries(from)) {
    const known = merged.get(key)
    merged.set(key, depth > 0 && isRecord(known) && isRecord(value) ? merge(known, value, depth - 1) : value)
  }
  // Own members alone, whatever their names are.
  return Object.fromEntries(merged)
}
