/** Makes the check whether a name is among globs (`*` stands for any text); without globs every name is. */
export function allowedNames(globs: readonly string[] | null): (name: string) => boolean {
  if (globs === null) return () => true
  const tests = globs.map((glob) => glob.split('*'))
  return (name) => tests.some((parts) => fits(name, parts))
}

/** By search instead of a pattern: no glob can make it backtrack. */
function fits(name: string, [first = '', ...rest]: readonly string[]): boolean {
  const last = rest.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found === -1 || found + part.length > name.length - last.length) return false
    at = found + part.length
  }
  return true
}
