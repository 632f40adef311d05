/**
 * Bits of the filter for one key, and the number of them that a look-up tests. About one in two hundred unknown keys
 * passes for a known one.
 */
const BITS = 12
const PROBE = [0, 1, 2, 3, 4, 5]

/**
 * Tells of most keys that were never added that they were not, in memory alone. Keys cannot be taken out: see
 * {@link KeyFilter.isFull}.
 */
export class KeyFilter {
  readonly #words: Uint32Array
  readonly #capacity: number
  #count = 0

  /** `capacity`: keys, from 1; it takes 12 to 24 bits for each. */
  constructor(capacity: number) {
    this.#words = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(32, capacity * BITS))) / 32)
    this.#capacity = capacity
  }

  /** Has it as many keys as it was made for? Beyond that it takes ever more unknown keys for known ones. */
  get isFull(): boolean {
    return this.#count >= this.#capacity
  }

  /** Keys that were added, each as often as it was. */
  get count(): number {
    return this.#count
  }

  /** Adds a key. */
  add(key: string): void {
    this.#count++
    for (const bit of this.#bitsOf(key)) this.#words[bit >>> 5] = (this.#words[bit >>> 5] ?? 0) | (1 << (bit & 31))
  }

  /** False: it was never added. */
  mayHave(key: string): boolean {
    return this.#bitsOf(key).every((bit) => ((this.#words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0)
  }

  #bitsOf(key: string): readonly number[] {
    const last = this.#words.length * 32 - 1
    const [first, step] = hashesOf(key)
    return PROBE.map((probe) => (first + probe * step) & last)
  }
}

/** Two 32-bit hashes of a key, after FNV-1a; the second is odd. */
function hashesOf(key: string): [number, number] {
  let one = 0x811c9dc5
  let other = 0x9747b28c
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at)
    one = Math.imul(one ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x5bd1e995)
  }
  return [mixed(one), mixed(other) | 1]
}

/** The low bits depend on all others. */
function mixed(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (half ^ (half >>> 16)) >>> 0
}
