import { NodeError } from '../kit/errors.js'
import { utf8Text } from './utf8-text.js'

/** How standard input is read. */
interface StdinOptions {
  /** This command line, for the next step of an error. */
  readonly again?: string | null | undefined
  /**
   * Whether empty input is meant. Default false: a failed command before a pipe gives no bytes. `flag`: there is
   * `--allow-empty`.
   */
  readonly empty?: boolean | 'flag'
}

/**
 * Reads standard input to its end as UTF-8.
 * @throws NodeError USAGE beyond `maxBytes`, for invalid UTF-8, and for empty input that is not meant
 */
export async function readStdin(maxBytes: number, { again = null, empty = false }: StdinOptions = {}): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) throw new NodeError('USAGE', `standard input is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  if (size === 0 && empty !== true) {
    const next = empty === 'flag' ? { next: [`${again ?? 'a2a-node doc set <doc> -'} --allow-empty`] } : {}
    throw new NodeError('USAGE', 'standard input is empty; a command before a pipe may have failed', next)
  }
  return utf8Text(Buffer.concat(chunks), { name: 'standard input', again })
}
