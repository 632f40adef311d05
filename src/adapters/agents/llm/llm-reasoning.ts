/** Names of the tags that some models write around reasoning in their text. */
const TAGS = ['think', 'thinking', 'thought', 'reasoning'] as const
/** The tags in lower case, and the closing tag of each. Magistral writes square brackets, gpt-oss channels. */
const PAIRS: readonly (readonly [open: string, close: string])[] = [
  ...TAGS.map((tag) => [`<${tag}>`, `</${tag}>`] as const),
  ['[think]', '[/think]'],
  ['<|channel|>analysis<|message|>', '<|channel|>final<|message|>']
]
/** Characters of the longest tag. */
const MAX_TAG = Math.max(...PAIRS.flat().map((tag) => tag.length))
/** White space before an answer in which a tag is awaited, in characters. */
const MAX_SPACE = 1024

/**
 * Separates the answer of a model from the reasoning before it, piece by piece. Tags after the first word of the answer
 * are text.
 */
export class ReasoningFilter {
  /** Text that may still be the beginning of a tag, or of its end. */
  #pending = ''
  /** The end tag of the reasoning; null: there is none. */
  #close: string | null = null
  #isAnswering = false
  #hasReasoned = false

  /** The part of the next piece that is answer. */
  push(piece: string): string {
    if (this.#isAnswering) return piece
    this.#pending += piece
    for (;;) {
      if (this.#close !== null) {
        const at = inLowerCase(this.#pending).indexOf(this.#close)
        if (at === -1) {
          this.#pending = this.#pending.slice(-this.#close.length + 1)
          return ''
        }
        this.#pending = this.#pending.slice(at + this.#close.length)
        this.#close = null
      }
      const begun = this.#pending.trimStart()
      // White space after reasoning only separates the two.
      if (this.#hasReasoned) this.#pending = begun
      if (this.#pending.length - begun.length > MAX_SPACE) return this.#release()
      const first = inLowerCase(begun.slice(0, MAX_TAG + 1))
      const pair = PAIRS.find(([open]) => first.startsWith(open))
      if (pair === undefined) return PAIRS.some(([open]) => open.startsWith(first)) ? '' : this.#release()
      this.#close = pair[1]
      this.#hasReasoned = true
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

/**
 * A whole answer without reasoning whose beginning the template of the server wrote: no beginning stands before its
 * end, which ends a line or follows its last word without a space. Tags in quotes are text.
 */
export function withoutLoneEnd(text: string): string {
  const lower = inLowerCase(text)
  for (const [open, close] of PAIRS) {
    const opened = lower.indexOf(open)
    const limit = opened === -1 ? text.length : opened
    for (let at = lower.indexOf(close); at !== -1 && at < limit; at = lower.indexOf(close, at + 1)) {
      const after = text.slice(at + close.length)
      if (endsReasoning(text.slice(Math.max(0, at - 1), at), after)) return after.trimStart()
    }
  }
  return text
}

/** The text of the same length with ASCII letters in lower case, as those of tags. */
function inLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

function endsReasoning(before: string, after: string): boolean {
  if (/["'`“‘«(]/.test(before)) return false
  return /^[^\S\n]*(?:\n|$)/.test(after) || /\S/.test(before)
}
