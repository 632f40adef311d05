import { createRequire } from 'node:module'

/** Work of one check: size of the compiled pattern times characters. About a tenth of a second. */
const MAX_STEPS = 1_000_000

/** What a schema's check needs of a regular expression. */
export interface LinearPattern {
  /** @throws Error for a text that is too long for the pattern */
  test(text: string): boolean
  toString(): string
}

/**
 * A pattern of a schema on RE2, whose time is linear to the text: with the engine of JavaScript 36 characters can take minutes. RE2 is
 * loaded at the first pattern. It knows no look-around and no back-references, and `\s` is ASCII there. @throws Error for what it does not know
 */
export function linearPattern(pattern: string): LinearPattern {
  const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js')
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
  const most = Math.floor(MAX_STEPS / Math.max(1, compiled.programSize()))
  return {
    test: (text) => {
      if (text.length > most) throw new Error(`the pattern ${pattern} takes texts of at most ${most} characters`)
      return compiled.test(text)
    },
    // Equal patterns of a schema are compiled once, by their text.
    toString: () => pattern
  }
}
