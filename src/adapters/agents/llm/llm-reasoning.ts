/** Tags around the reasoning that some models write into their text, without brackets. */
const TAGS = ['think', 'thinking', 'thought', 'reasoning'] as const
/** The tags with their ends. Magistral writes square brackets. */
const PAIRS: readonly (readonly [open: string, close: string])[] = [
  ...TAGS.map((tag) => [`<${tag}>`, `</${tag}>`] as const),
  ['[THINK]', '[/THINK]']
]
/** An end alone on its line: the server's template wrote the beginning. */
const LONE_END = new RegExp(`^[ \\t]*(?:${PAIRS.map(([, close]) => close.replaceAll(/[[\]]/g, '\\$&')).join('|')})[ \\t]*$`, 'm')

/** Separates the answer of a model from the reasoning before it, piece by piece. Tags after the first word of the answer are text. */
export class ReasoningFilter {
  /** Text that may still be the beginning of a tag, or of its end. */
  #pending = ''
  /** The end tag of the reasoning; null: there is none. */
  #close: string | null = null
  #isAnswering = false

  /** The part of the next piece that is answer. */
  push(piece: string): string {
    if (this.#isAnswering) return piece
    this.#pending += piece
    for (;;) {
      if (this.#close !== null) {
        const at = this.#pending.indexOf(this.#close)
        if (at === -1) {
          this.#pending = this.#pending.slice(-this.#close.length + 1)
          return ''
        }
        this.#pending = this.#pending.slice(at + this.#close.length)
        this.#close = null
      }
      const begun = this.#pending.trimStart()
      const pair = PAIRS.find(([open]) => begun.startsWith(open))
      if (pair === undefined) return PAIRS.some(([open]) => open.startsWith(begun)) ? '' : this.#release()
      this.#close = pair[1]
      this.#pending = begun.slice(pair[0].length)
    }
  }

  /** The rest, after the last piece. */
  end(): string {
    return this.#isAnswering || this.#close !== null ? '' : this.#release()
  }

  #release(): string {
    const text = this.#pending
    this.#pending = ''
    this.#isAnswering = true
    return text
  }
}

/** A whole answer without reasoning whose beginning the server's template wrote, so that only its end is there. */
export function withoutLoneEnd(text: string): string {
  const end = LONE_END.exec(text)
  return end === null ? text : text.slice(end.index + end[0].length).trimStart()
}
