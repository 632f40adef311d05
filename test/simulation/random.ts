/** Chance from a seed: the same seed gives the same numbers. */
export class Random {
  #state: number

  /** `seed`: a whole number; seeds that are neighbours give unlike numbers. */
  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
    for (let round = 0; round < 4; round++) this.next()
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  /** True so often of 1. */
  is(share: number): boolean {
    return this.next() < share
  }

  /** One of several; null of none. */
  pick<T>(from: readonly T[]): T | null {
    return from[Math.floor(this.next() * from.length)] ?? null
  }

  /** One of several, each as likely as its weight says. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const names = Object.keys(weights) as T[]
    let left = this.next() * names.reduce((sum, name) => sum + weights[name], 0)
    for (const name of names) {
      left -= weights[name]
      if (left < 0) return name
    }
    throw new Error('nothing to choose from')
  }
}
