/** One step of a pattern: null takes any text, a character itself, a function one character. */
type GlobStep = null | string | ((char: string) => boolean)

const anyOne = (): boolean => true

/** Makes the check whether a name is among globs (`*` stands for any text); without globs every name is. */
export function allowedNames(globs: readonly string[] | null): (name: string) => boolean {
  if (globs === null) return () => true
  const all = globs.map((glob) => glob.split('').map((char) => (char === '*' ? null : char)))
  return (name) => all.some((steps) => fits(steps, name))
}

/** Makes the check of one name of a path: `*`, `?` and classes such as `[a-z]` and `[!a]`. */
export function nameGlob(pattern: string): (name: string) => boolean {
  const steps: GlobStep[] = []
  const chars = [...pattern]
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? ''
    const close = char === '[' ? chars.indexOf(']', i + 2) : -1
    if (close === -1) steps.push(stepOf(char))
    else {
      steps.push(classOf(chars.slice(i + 1, close)))
      i = close
    }
  }
  return (name) => fits(steps, [...name])
}

/**
 * Does a path (segments separated by `/`) match a glob? `*` and `?` stay inside a segment, `**` matches any number of
 * segments. A pattern without a slash is compared with the last segment alone. Takes time proportional to pattern x
 * path for any content.
 */
export function matchesGlob(pattern: string, path: string): boolean {
  const segments = path.split('/')
  if (!pattern.includes('/')) return fits(pattern.split('').map(stepOf), segments.at(-1) ?? '')
  // reach[i]: the patterns so far fit the first i segments.
  let reach = segments.map((_, i) => i === 0).concat(false)
  for (const one of pattern.replace(/^\.?\//, '').split('/')) {
    const steps = one === '**' ? null : one.split('').map(stepOf)
    const first = reach.indexOf(true)
    reach =
      steps === null
        ? reach.map((_, i) => first !== -1 && i >= first)
        : reach.map((_, i) => i > 0 && reach[i - 1] === true && fits(steps, segments[i - 1] ?? ''))
  }
  return reach[segments.length] === true
}

function stepOf(char: string): GlobStep {
  return char === '*' ? null : char === '?' ? anyOne : char
}

function classOf(chars: readonly string[]): (char: string) => boolean {
  const isNegated = chars[0] === '!' || chars[0] === '^'
  const set = isNegated ? chars.slice(1) : chars
  return (one) => {
    const isIn = set.some((char, i) => {
      const isRange = char === '-' && i > 0 && i < set.length - 1
      return isRange ? one >= (set[i - 1] ?? '') && one <= (set[i + 1] ?? '') : char === one
    })
    return isIn !== isNegated
  }
}

/**
 * Only the last star is ever tried again: with an earlier one nothing could fit that does not fit with it. So no
 * pattern can be slow.
 */
function fits(steps: readonly GlobStep[], name: ArrayLike<string>): boolean {
  let [step, star, from] = [0, -1, 0]
  for (let at = 0; at < name.length; ) {
    const one = steps[step]
    if (one === null) {
      star = step++
      from = at
    } else if (one === name[at] || (typeof one === 'function' && one(name[at] ?? ''))) {
      step++
      at++
    } else if (star !== -1) {
      step = star + 1
      at = ++from
    } else return false
  }
  return steps.slice(step).every((one) => one === null)
}
