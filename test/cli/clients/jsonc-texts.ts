import fc from 'fast-check'

/** White space and comments between two tokens; they hold what would mislead a search for commas and braces. */
const TRIVIA = [
  '',
  '',
  ' ',
  '\n',
  '\n  ',
  '\n\t',
  ' // a, "b": {}\n',
  '/* , } { " */',
  '\n    // c\n    ',
  ' /* d\n */ '
]
const NAMES = fc.constantFrom('files', 'github', 'x y', 'mcpServers2', 'a2a', '//', 'ä', '')
const SCALARS = fc.oneof(fc.constantFrom(null, true, 0, -1.5e3, '', '}', ', ', '// no', '"', '\\'), fc.string())

/** Texts of a file with other servers, none, an empty container, or no container. `none` of its names is `a2a-node`. */
export function jsoncTexts(container: string): fc.Arbitrary<string> {
  const server = fc.dictionary(
    fc.constantFrom('command', 'args', 'env', 'note'),
    fc.oneof(SCALARS, fc.array(SCALARS, { maxLength: 3 }))
  )
  const servers = fc.option(fc.dictionary(NAMES, server, { maxKeys: 3 }), { nil: undefined })
  const others = fc.dictionary(NAMES, fc.oneof(SCALARS, fc.array(SCALARS, { maxLength: 2 }), server), { maxKeys: 3 })
  return fc
    .record({
      others,
      servers,
      isFirst: fc.boolean(),
      eol: fc.constantFrom('\n', '\r\n'),
      pieces: fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 40 }),
      isPlain: fc.boolean(),
      unit: fc.constantFrom(0, 2, 4, '\t')
    })
    .map(({ others: rest, servers: inside, isFirst, eol, pieces, isPlain, unit }) => {
      const own = inside === undefined ? {} : { [container]: inside }
      const value = isFirst ? { ...own, ...rest } : { ...rest, ...own }
      const text = isPlain ? JSON.stringify(value, null, unit) : wild(value, pieces)
      return text.replaceAll('\n', eol)
    })
}

/** Writes a value with trivia at every place, and commas behind last values now and then. */
function wild(value: unknown, pieces: readonly number[]): string {
  let at = 0
  const pick = (): number => pieces[at++ % pieces.length] ?? 0
  const gap = (): string => TRIVIA[pick() % TRIVIA.length] ?? ''
  const write = (one: unknown): string => {
    if (typeof one !== 'object' || one === null) return JSON.stringify(one)
    const isArray = Array.isArray(one)
    const parts = isArray
      ? one.map(write)
      : Object.entries(one).map(([key, inner]) => `${JSON.stringify(key)}${gap()}:${gap()}${write(inner)}`)
    const body =
      parts.map((part, i) => `${gap()}${part}${gap()}${i < parts.length - 1 || pick() % 4 === 0 ? ',' : ''}`).join('') +
      gap()
    return isArray ? `[${body}]` : `{${body}}`
  }
  return gap() + write(value) + gap()
}
