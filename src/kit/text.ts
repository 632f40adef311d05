// Separators of lines and cells, with the indent behind them: words on both sides must stay apart.
const BREAK = /[\t\n\v\f\r\u2028\u2029]\s*/g
// C0 and C1 controls, line and paragraph separators, and the marks that turn the writing direction.
const CONTROL = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
// The first half of a surrogate pair whose second was cut off.
const HALF = /[\ud800-\udbff]$/

/** Displayed characters of a peer's text, at most. */
export const SHOWN_MAX = 256

/** Text of others made safe to show: on one line, control and direction characters removed, cut at 256 characters. */
export function shown(text: string, max: number = SHOWN_MAX): string {
  const clean = text
    .replace(BREAK, (found, at: number) => (at === 0 || at + found.length === text.length ? '' : ' '))
    .replace(CONTROL, '')
  return clean.length > max ? `${copied(clean.slice(0, max - 1).replace(HALF, ''))}…` : clean
}

/** A slice of a text as a text of its own. A slice that is kept also keeps the whole text in memory. */
export function copied(slice: string): string {
  return JSON.parse(JSON.stringify(slice)) as string
}

/** A text as a shell takes it for one word: quoted where it must be. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * The candidates nearest to a mistyped word, best first, at most three. A candidate has the word as prefix, or an edit
 * distance of at most 2 and at most half of the shorter word, ignoring case. A word of one character has none.
 */
export function nearest(word: string, candidates: Iterable<string>): string[] {
  const scored: { name: string; distance: number }[] = []
  const small = word.toLowerCase()
  for (const name of candidates) {
    const other = name.toLowerCase()
    const distance =
      name === word
        ? -1
        : other.startsWith(small) && other !== small && word.length > 1
          ? 1
          : editDistance(small, other)
    if (distance <= Math.min(2, small.length / 2, other.length / 2)) scored.push({ name, distance })
  }
  return scored
    .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
    .slice(0, 3)
    .map((one) => one.name)
}

function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(same, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
    }
    row = next
  }
  return row[b.length] ?? 3
}

/** Words of a text, in lower case: runs of letters and digits. */
export function wordsOf(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().split(/[^\p{L}\p{N}]+/u))].filter((word) => word !== '')
}

/**
 * The items that contain words of a search, the best first, then by name: a word counts 2 in the name and 1 in the
 * description. Items without any are left out. Depends on its arguments alone.
 */
export function byWords<T extends { readonly name: string; readonly description: string }>(
  words: readonly string[],
  items: readonly T[]
): T[] {
  const scored = items.map((item) => {
    const [inName, inText] = [item.name.toLowerCase(), item.description.toLowerCase()]
    return {
      item,
      score: words.reduce((sum, word) => sum + (inName.includes(word) ? 2 : 0) + (inText.includes(word) ? 1 : 0), 0)
    }
  })
  const hits = scored.filter(({ score }) => score > 0)
  return hits.sort((a, b) => b.score - a.score || (a.item.name < b.item.name ? -1 : 1)).map(({ item }) => item)
}
