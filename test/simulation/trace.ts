/** What happens in a world, a line an event: its number, the time in milliseconds, the node and what happened there. */
export class Trace {
  readonly #lines: string[] = []
  readonly #elapsed: () => number

  /** `elapsed`: milliseconds since the world began. */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** Adds an event. */
  add(node: string, what: string): void {
    this.#lines.push(`${this.#lines.length + 1} ${this.#elapsed()} ${node} ${what}`)
  }

  /** The last lines, or all of them. */
  text(last = this.#lines.length): string {
    return this.#lines.slice(-last).join('\n')
  }
}

/** A frame in a few characters: its kind, its length and a sum over all its bytes. */
export function frameText(frame: Uint8Array): string {
  let sum = 0x811c9dc5
  for (const byte of frame) sum = Math.imul(sum ^ byte, 0x01000193)
  return `${KINDS[frame[0] ?? -1] ?? 'unknown'} ${frame.byteLength} ${(sum >>> 0).toString(16)}`
}

const KINDS: readonly string[] = ['envelope', 'chunk', 'ping', 'pong', 'control', 'reliable', 'call', 'relayed']
