/** Bytes of text (UTF-8) that count as one token of a language model, where the model does not say. */
export const BYTES_PER_TOKEN = 4

/** Rough cost of a number, a key or an object beside its text, in bytes. */
const NODE_BYTES = 16

/** A text with such a character holds two bytes for each of its characters. */
const WIDE = /[\u0100-\uffff]/
/** Shorter texts count one byte a character: their cost is that of the value. */
const SHORT_TEXT = 64

/**
 * About how many bytes a JSON value (members may be bytes) holds in memory. Iterative and cheap: texts are not encoded.
 */
export function sizeOf(value: unknown): number {
  let bytes = 0
  const stack: unknown[] = [value]
  while (stack.length > 0) {
    const top = stack.pop()
    bytes += NODE_BYTES
    if (typeof top === 'string') bytes += sizeOfText(top)
    else if (top instanceof Uint8Array) bytes += top.byteLength
    else if (typeof top === 'object' && top !== null) bytes += pushMembers(top, stack)
  }
  return bytes
}

function sizeOfText(text: string): number {
  return text.length > SHORT_TEXT && WIDE.test(text) ? 2 * text.length : text.length
}

/** Puts the members on the stack; the bytes of their names. */
function pushMembers(parent: object, stack: unknown[]): number {
  if (Array.isArray(parent)) {
    for (const item of parent) stack.push(item)
    return 0
  }
  let bytes = 0
  for (const key of Object.keys(parent)) {
    bytes += key.length
    stack.push((parent as Record<string, unknown>)[key])
  }
  return bytes
}
