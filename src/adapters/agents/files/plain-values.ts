/** Most keys of one front matter whose values are looked at: bounds the cost of a hostile one. */
const MAX_KEYS = 128
/**
 * A key at the top level with a value on its line. Values that begin with a quote or a block mark have a form of their
 * own.
 */
const KEY_LINE = /^([A-Za-z_][\w.-]*)[ \t]*:[ \t]+([^\s"'|>#].*)$/
/** The mapping of the node: a fault in it must not become a text. */
const OWN_KEY = 'a2a'
/** Lines of the form `key: value`, at any depth. */
const PAIR = /^[\s-]*["']?[\w.-]+["']?[ \t]*:[ \t]+\S/
/** Codes of the `yaml` package for a value that cannot be read without quotes. */
const UNQUOTED: ReadonlySet<string> = new Set([
  'BAD_ALIAS',
  'BAD_SCALAR_START',
  'BLOCK_AS_IMPLICIT_KEY',
  'MULTILINE_IMPLICIT_KEY',
  'UNEXPECTED_TOKEN'
])

/**
 * Puts quotes around plain top-level values that no YAML reader takes, such as a description with `: ` in it. Clients
 * of sub-agent files read them as text. The number of lines stays the same, and the text itself when nothing is to be
 * quoted. `isReadable` judges one key with its value.
 */
export function quotePlainValues(yaml: string, isReadable: (pair: string) => boolean): string {
  const lines = yaml.split(/\r?\n/)
  let keys = 0
  let hasQuoted = false
  for (let first = 0; first < lines.length && keys < MAX_KEYS; first++) {
    const [, key, value] = KEY_LINE.exec(lines[first] ?? '') ?? []
    if (key === undefined || value === undefined || key === OWN_KEY) continue
    keys++
    const last = lastLineOf(lines, first)
    const chunk = lines.slice(first, last + 1)
    if (isReadable(chunk.join('\n')) || isUnclosed(chunk.join('\n'), value)) continue
    const quoted = [value, ...chunk.slice(1)].map((line) => line.replaceAll("'", "''"))
    lines.splice(first, chunk.length, ...`${key}: '${quoted.join('\n')}'`.split('\n'))
    hasQuoted = true
  }
  return hasQuoted ? lines.join('\n') : yaml
}

/** Advice for an error of the `yaml` package in this line; empty when quotes do not help. */
export function quotesHint(code: string, line: string): string {
  return UNQUOTED.has(code) && PAIR.test(line) ? '; put the value in quotes' : ''
}

/** The last line of a value: indented lines belong to it, and blank lines between them. */
function lastLineOf(lines: readonly string[], first: number): number {
  let last = first
  for (let at = first + 1; at < lines.length && /^(?:[ \t]|$)/.test(lines[at] ?? ''); at++)
    if (lines[at]?.trim() !== '') last = at
  return last
}

/** A list or mapping that is never closed is a fault of its author, not a text. */
function isUnclosed(chunk: string, value: string): boolean {
  return (value.startsWith('[') && !chunk.includes(']')) || (value.startsWith('{') && !chunk.includes('}'))
}
