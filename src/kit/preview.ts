/** Deepest nesting that is looked into. */
const MAX_DEPTH = 32

/**
 * The beginning of a JSON value as text, about `max` characters; bytes are given by length. The cost is bounded by
 * `max`.
 */
export function previewOf(value: unknown, max: number): string {
  const parts: string[] = []
  let left = max
  const put = (text: string): boolean => {
    parts.push(text.slice(0, left))
    left -= text.length
    return left > 0
  }
  const show = (one: unknown, depth: number): boolean => {
    if (typeof one === 'string') return put(JSON.stringify(one.slice(0, left)))
    if (typeof one !== 'object' || one === null) return put(String(one))
    if (one instanceof Uint8Array) return put(`<${one.byteLength} bytes>`)
    if (depth >= MAX_DEPTH) return put('...')
    return Array.isArray(one) ? showAll(one, depth) : showMembers(one as Record<string, unknown>, depth)
  }
  const showAll = (list: readonly unknown[], depth: number): boolean => {
    if (!put('[')) return false
    for (const [index, one] of list.entries()) if (!put(index === 0 ? '' : ',') || !show(one, depth + 1)) return false
    return put(']')
  }
  const showMembers = (record: Record<string, unknown>, depth: number): boolean => {
    let lead = '{'
    for (const key in record) {
      if (!put(`${lead}${JSON.stringify(key.slice(0, left))}:`) || !show(record[key], depth + 1)) return false
      lead = ','
    }
    return put(lead === '{' ? '{}' : '}')
  }
  return show(value, 0) ? parts.join('') : `${parts.join('')}…`
}
