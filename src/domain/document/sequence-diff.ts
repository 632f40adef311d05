/** At `at` of the old sequence `remove` elements go, and `from` up to `to` of the new one come. */
export interface Hunk {
  readonly at: number
  readonly remove: number
  readonly from: number
  readonly to: number
}

/** Differences up to which the smallest change is computed; beyond it the differing middle is replaced. */
export const MAX_DIFFERENCES = 512

/** How one sequence becomes another, in rising order (Myers, "An O(ND) Difference Algorithm", greedy form). */
export function sequenceDiff(old: readonly unknown[], next: readonly unknown[]): Hunk[] {
  let head = 0
  while (head < old.length && head < next.length && old[head] === next[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < next.length - head && old.at(-1 - tail) === next.at(-1 - tail)) tail++
  const a = old.slice(head, old.length - tail)
  const b = next.slice(head, next.length - tail)
  if (a.length === 0 && b.length === 0) return []
  const whole = [{ at: head, remove: a.length, from: head, to: head + b.length }]
  if (a.length === 0 || b.length === 0) return whole
  const kept = commonPairs(a, b)
  return kept === null
    ? whole
    : between(kept, a.length, b.length).map(({ at, from, to, ...rest }) => ({
        at: at + head,
        from: from + head,
        to: to + head,
        ...rest
      }))
}

type Pair = readonly [number, number]

/** The gaps around the pairs that stay. */
function between(kept: readonly Pair[], oldLength: number, nextLength: number): Hunk[] {
  const hunks: Hunk[] = []
  let [x, y] = [0, 0]
  for (const [left, right] of [...kept, [oldLength, nextLength] as const]) {
    if (left > x || right > y) hunks.push({ at: x, remove: left - x, from: y, to: right })
    x = left + 1
    y = right + 1
  }
  return hunks
}

/** Pairs of equal elements on a shortest way, rising; null beyond {@link MAX_DIFFERENCES}. */
function commonPairs(a: readonly unknown[], b: readonly unknown[]): Pair[] | null {
  const most = Math.min(a.length + b.length, MAX_DIFFERENCES)
  const far = new Map<number, number>([[1, 0]])
  const rounds: ReadonlyMap<number, number>[] = []
  for (let d = 0; d <= most; d++) {
    rounds.push(new Map(far))
    for (let k = -d; k <= d; k += 2) {
      let x = start(far, k, d)
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      far.set(k, x)
      if (x >= a.length && x - k >= b.length) return walkBack(rounds, a.length, b.length)
    }
  }
  return null
}

function start(far: ReadonlyMap<number, number>, k: number, d: number): number {
  const [down, right] = [far.get(k + 1) ?? -1, far.get(k - 1) ?? -1]
  return k === -d || (k !== d && right < down) ? down : right + 1
}

function walkBack(rounds: readonly ReadonlyMap<number, number>[], oldLength: number, nextLength: number): Pair[] {
  const pairs: Pair[] = []
  let [x, y] = [oldLength, nextLength]
  for (let d = rounds.length - 1; d >= 0; d--) {
    const far = rounds[d] ?? new Map<number, number>()
    const first = start(far, x - y, d)
    const k = x - y
    while (x > first) pairs.push([--x, --y])
    const isDown = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1))
    if (isDown) y--
    else x--
  }
  return pairs.reverse()
}
