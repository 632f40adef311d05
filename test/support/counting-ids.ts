import type { IdSource } from '../../src/kit/ids.js'

/** Ids that count: `task_1`, `task_2`, ... The same in each run. */
export function countingIds(): IdSource {
  let last = 0
  return { next: (prefix) => `${prefix}_${++last}` }
}
