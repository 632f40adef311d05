/** Deepest level that is converted; values below it stay as they are. */
const MAX_DEPTH = 64

/**
 * The value as agents see it: bytes (Uint8Array) anywhere in it become base64 text, all else stays.
 * Parts without bytes are shared with the argument, not copied.
 */
export function toAgentJson(value: unknown): unknown {
  return convert(value, 0)
}

function convert(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (value instanceof Uint8Array)
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')
  if (Array.isArray(value)) return convertedList(value, depth)
  const record = value as Record<string, unknown>
  // Each once: converting values with bytes again would double the time with every level above them.
  let entries: [string, unknown][] | null = null
  const keys = Object.keys(record)
  for (const [at, key] of keys.entries()) {
    const item = convert(record[key], depth + 1)
    if (item !== record[key]) entries ??= keys.slice(0, at).map((one) => [one, record[one]])
    entries?.push([key, item])
  }
  // fromEntries defines: a key named __proto__ stays a key.
  return entries === null ? value : Object.fromEntries(entries)
}

function convertedList(list: readonly unknown[], depth: number): readonly unknown[] {
  let items: unknown[] | null = null
  for (const [at, before] of list.entries()) {
    const item = convert(before, depth + 1)
    if (item !== before) items ??= list.slice(0, at)
    items?.push(item)
  }
  return items ?? list
}

/**
 * A value of an agent as JSON text; bytes anywhere in it become base64 text. undefined when it has no JSON form (a
 * function).
 * @throws TypeError for a circular value or a bigint
 */
export function agentJsonText(value: unknown): string | undefined {
  return JSON.stringify(value, function (this: unknown, key: string, item: unknown) {
    // A Buffer has turned itself into an object by now; the holder still has it.
    const original = (this as Record<string, unknown>)[key]
    return original instanceof Uint8Array ? toAgentJson(original) : item
  })
}
