import { isUtf8 } from 'node:buffer'
import { NodeError } from '../kit/errors.js'

/**
 * Bytes that a person gave as text; a byte order mark stays. `again` is the command that takes them once more.
 * @throws NodeError USAGE for what is no UTF-8, with its line: bytes that nobody meant would be stored for what was given
 */
export function utf8Text(bytes: Uint8Array, { name, again }: { readonly name: string; readonly again: string | null }): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  if (isUtf8(buffer)) return text
  // What cannot be read became U+FFFD, so the first byte that differs is the first of those.
  const copy = Buffer.from(text)
  const at = buffer.findIndex((byte, index) => byte !== copy[index])
  const line = buffer.subarray(0, at).filter((byte) => byte === 0x0a).length + 1
  throw new NodeError('USAGE', `${name} is no UTF-8 from line ${line} on (byte ${at + 1} of ${buffer.length})`, {
    next: [`iconv -f '<its encoding>' -t UTF-8 '<file>' ${again === null ? "> '<new file>'" : `| ${again}`}`]
  })
}
