/** The scripts in common use today: UAX 31, table 5. Names have letters of no others. */
const SCRIPTS = [
  'Arabic',
  'Armenian',
  'Bengali',
  'Bopomofo',
  'Cyrillic',
  'Devanagari',
  'Ethiopic',
  'Georgian',
  'Greek',
  'Gujarati',
  'Gurmukhi',
  'Han',
  'Hangul',
  'Hebrew',
  'Hiragana',
  'Kannada',
  'Katakana',
  'Khmer',
  'Lao',
  'Latin',
  'Malayalam',
  'Myanmar',
  'Oriya',
  'Sinhala',
  'Tamil',
  'Telugu',
  'Thaana',
  'Thai',
  'Tibetan'
] as const

type Script = (typeof SCRIPTS)[number]

/** Scripts that one name may mix: the "highly restrictive" level of UTS 39, section 5.2. */
const TOGETHER: readonly (readonly Script[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul']
]

interface ScriptPattern {
  readonly name: Script
  readonly pattern: RegExp
}

const COMMON = String.raw`\p{Script_Extensions=Common}\p{Script_Extensions=Inherited}`

/** Matches the beginning of a text that these scripts can write, with the characters common to all scripts. */
function beginningIn(scripts: readonly Script[]): RegExp {
  return new RegExp(`^[${COMMON}${scripts.map((one) => String.raw`\p{Script_Extensions=${one}}`).join('')}]*`, 'u')
}

function patternsOfScripts(): { readonly beginnings: readonly RegExp[]; readonly scripts: readonly ScriptPattern[] } {
  return {
    beginnings: [...TOGETHER, ...SCRIPTS.map((one) => [one])].map(beginningIn),
    scripts: SCRIPTS.map((name) => ({ name, pattern: new RegExp(String.raw`^\p{Script_Extensions=${name}}`, 'u') }))
  }
}

let made: ReturnType<typeof patternsOfScripts> | undefined
/** Made at the first use: they take 15 ms, and few commands check a name. */
function patterns(): ReturnType<typeof patternsOfScripts> {
  made ??= patternsOfScripts()
  return made
}

/**
 * Index (UTF-16 units) of the first character that cannot stand in one name with those before it; null when all can.
 */
export function scriptBreak(text: string): number | null {
  let longest = 0
  for (const pattern of patterns().beginnings) {
    longest = Math.max(longest, pattern.exec(text)?.[0].length ?? 0)
    if (longest === text.length) return null
  }
  return longest
}

/** The script of a character, e.g. `Cyrillic`; null for one of no script of {@link SCRIPTS}. */
export function scriptOf(character: string): string | null {
  return patterns().scripts.find(({ pattern }) => pattern.test(character))?.name ?? null
}
