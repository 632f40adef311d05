import { isUtf8 } from 'node:buffer'
import { NodeError } from '../kit/errors.js'

/**
 * Decodes bytes of a person as text; a byte order mark stays. `again` is the command to repeat.
 * @throws NodeError USAGE with the line of invalid UTF-8, which would be stored as other characters
 */
export function utf8Text(
  bytes: Uint8Array,
  { name, again }: { readonly name: string; readonly again: string | null }
): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  if (isUtf8(buffer)) return text
  // Invalid bytes became U+FFFD, so the first differing byte is invalid.
  const copy = Buffer.from(text)
  const at = buffer.findIndex((byte, index) => byte !== copy[index])
  const line = buffer.subarray(0, at).filter((byte) => byte === 0x0a).length + 1
  throw new NodeError('USAGE', `${name} is no UTF-8 from line ${line} on (byte ${at + 1} of ${buffer.length})`, {
    next: [`iconv -f '<its encoding>' -t UTF-8 '<file>' ${again === null ? "> '<new file>'" : `| ${again}`}`]
  })
}
