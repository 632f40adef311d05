import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

/** Size of compiled patterns times characters, in one check: about a fifth of a second. */
const MAX_STEPS = 2_000_000
/** Ways in which a quick pattern may match, beside the one part of it that may repeat without end. */
const MAX_PATHS = 16

/** Characters that a quick pattern matches at least: it may start again at each position of a text. */
const MAX_FIXED = 256

/**
 * A part of a pattern that matches one character, and how often it may: `[...]`, `\d`, `x`; then `*`, `+`, `?`, `{2}`,
 * `{2,}` or `{2,3}`.
 */
const PART =
  /(?:\[(?:\\.|[^\\\]])+\]|\\[dDsSwW.\-/^$*+?()[\]{}|]|[^\\[\](){}*+?|^$])(?:([*+?])|\{(\d{1,3})(?:(,)(\d{0,3}))?\})?\??/y

/** The part of a regular expression that checks use. */
export interface Pattern {
  test(text: string): boolean
  toString(): string
}

/** Makes a pattern of its text. @throws Error when the text is no pattern, or one that its engine does not know */
export type MakePattern = (text: string, flags: string) => Pattern

/**
 * Patterns of JavaScript. Published patterns are written for both modes: `\p{L}` needs the u flag, `\-` is an error
 * under it.
 */
export const exactPattern: MakePattern = (text, flags) => {
  try {
    return new RegExp(text, flags)
  } catch {
    return new RegExp(text)
  }
}

/**
 * Patterns of RE2, whose time is linear to the text, for one check at a time. RE2 knows no look-around and no
 * back-references, and takes `\s` for ASCII. For texts that exact patterns cannot check in time. RE2 is loaded at the
 * first one.
 */
export class LinearPatterns {
  #steps = 0

  /** A new check begins. */
  begin(): void {
    this.#steps = 0
  }

  /**
   * @throws Error for syntax that RE2 does not know. Its `test` throws when the texts of a check are too long for the
   * patterns.
   */
  make(text: string): Pattern {
    const { RE2JS: Engine } = createRequire(import.meta.url)('re2js') as { readonly RE2JS: typeof RE2JS }
    const compiled = Engine.compile(Engine.translateRegExp(text))
    const size = Math.max(1, compiled.programSize())
    return {
      test: (value) => {
        this.#steps += size * value.length
        if (this.#steps > MAX_STEPS) throw new Error('texts that are too long for their patterns')
        return compiled.test(value)
      },
      // Equal patterns of a schema are compiled once, by their text.
      toString: () => text
    }
  }
}

/**
 * Does JavaScript match a pattern in time linear to the text, whatever that is? Known of simple ones alone: parts of
 * one character one after the other, without groups, of which one may repeat without end, and only behind the `^` with
 * which it begins.
 */
export function isQuickPattern(pattern: string): boolean {
  const source = pattern.replace(/^\^/, '')
  const body = source.endsWith('$') && !source.endsWith('\\$') ? source.slice(0, -1) : source
  let paths = 1
  let open = 0
  let fixed = 0
  PART.lastIndex = 0
  for (let at = 0; at < body.length; at = PART.lastIndex) {
    const part = PART.exec(body)
    if (part === null) return false
    const [, sign, least, comma, most] = part
    fixed += Number(most || least || 1)
    if (sign === '*' || sign === '+' || (comma !== undefined && most === '')) open++
    else if (sign === '?') paths *= 2
    else if (most !== undefined && most !== '') paths *= Math.max(1, Number(most) - Number(least) + 1)
  }
  return paths <= MAX_PATHS && fixed <= MAX_FIXED && open <= (source === pattern ? 0 : 1)
}
