/** Longest pattern that is matched, in characters. */
export const MAX_PATTERN = 256

/**
 * Does a path (segments separated by `/`) fit a glob? `*` and `?` stay inside a segment, `**` stands for any number of
 * segments; a pattern without a slash is compared with the last segment alone. Takes time proportional to pattern x path,
 * whatever they hold.
 */
export function matchesGlob(pattern: string, path: string): boolean {
  const segments = path.split('/')
  if (!pattern.includes('/')) return matchesSegment(pattern, segments.at(-1) ?? '')
  const wanted = pattern.replace(/^\.?\//, '').split('/')
  // reach[i]: the patterns so far fit the first i segments.
  let reach = segments.map((_, i) => i === 0).concat(false)
  for (const one of wanted) reach = one === '**' ? afterAny(reach) : afterOne(reach, one, segments)
  return reach[segments.length] === true
}

function afterAny(reach: readonly boolean[]): boolean[] {
  const first = reach.indexOf(true)
  return reach.map((_, i) => first !== -1 && i >= first)
}

function afterOne(reach: readonly boolean[], pattern: string, segments: readonly string[]): boolean[] {
  return reach.map((_, i) => i > 0 && reach[i - 1] === true && matchesSegment(pattern, segments[i - 1] ?? ''))
}

/** Only the last star is ever tried again: with an earlier one nothing could fit that does not fit with it. */
function matchesSegment(pattern: string, text: string): boolean {
  let p = 0
  let star = -1
  let from = 0
  for (let t = 0; t < text.length; ) {
    if (p < pattern.length && pattern[p] !== '*' && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++
      t++
    } else if (pattern[p] === '*') {
      star = p++
      from = t
    } else if (star !== -1) {
      p = star + 1
      t = ++from
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
