/** One header or one `key = value` of a TOML text. */
export interface Statement {
  readonly isHeader: boolean
  /** Beginning of its first line. */
  readonly lineStart: number
  /** Its first character, and the place behind its last one; a comment behind it is not in it. */
  readonly start: number
  readonly end: number
  /** The place behind its last line, line break included. */
  readonly lineEnd: number
}

/**
 * The statements of a text that is valid TOML, in their order: strings and arrays over several lines are one (TOML
 * 1.0).
 */
export function statementsOf(text: string): Statement[] {
  const found: Statement[] = []
  for (let at = 0; at < text.length; ) {
    const start = skipSpace(text, at)
    const end = statementEnd(text, start)
    const lineEnd = lineEndOf(text, end)
    if (end > start) found.push({ isHeader: text[start] === '[', lineStart: at, start, end, lineEnd })
    at = lineEnd
  }
  return found
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** The place behind the last character of a statement; `start` for an empty line and one with a comment only. */
function statementEnd(text: string, start: number): number {
  let depth = 0
  let end = start
  for (let at = start; at < text.length; ) {
    const char = text[at] ?? ''
    if (char === '"' || char === "'") {
      at = stringEnd(text, at, char)
      end = at
      continue
    }
    if ((char === '\n' || char === '#') && depth === 0) break
    if (char === '#') at = lineEndOf(text, at) - 1
    if (char === '[' || char === '{') depth++
    if (char === ']' || char === '}') depth--
    at++
    if (!/[\s#]/.test(char)) end = at
  }
  return end
}

/** The place behind a string, of one line or several. */
function stringEnd(text: string, start: number, quote: string): number {
  const fence = text.startsWith(quote.repeat(3), start) ? quote.repeat(3) : quote
  let at = start + fence.length
  while (at < text.length && !text.startsWith(fence, at)) at += quote === '"' && text[at] === '\\' ? 2 : 1
  at += fence.length
  // Up to two quotes may stand before the three that close.
  for (let more = 0; fence.length === 3 && more < 2 && text[at] === quote; more++) at++
  return at
}

/** The place behind the line break that follows. */
function lineEndOf(text: string, from: number): number {
  const at = text.indexOf('\n', from)
  return at === -1 ? text.length : at + 1
}
