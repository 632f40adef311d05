/**
 * Where a text stands in a source: `[start, end]`, or null unless it stands there exactly once. White space counts only
 * between words: the formatter chooses the breaks of lines.
 */
export function placeOf(source, text) {
  const tokens = text.match(/\w+|[^\w\s]/g)
  const pattern = tokens.map((token, at) => `${gapBefore(tokens[at - 1], token)}${escaped(token)}`).join('')
  const found = [...source.matchAll(new RegExp(pattern, 'g'))]
  return found.length === 1 ? [found[0].index, found[0].index + found[0][0].length] : null
}

function escaped(token) {
  return token.replaceAll(/[^\w\s]/g, String.raw`\$&`)
}

function gapBefore(before, token) {
  if (before === undefined) return ''
  return /\w/.test(before) && /\w/.test(token) ? String.raw`\s+` : String.raw`\s*`
}
