import { createHash } from 'node:crypto'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import { isRecord } from '../../../kit/json.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'
import { failure } from '../files/hosted-agent.js'

/** Capabilities of the starter agent `text`. */
export const TEXT_CAPABILITIES: readonly CapabilityDescriptor[] = [
  {
    id: 'text.stats',
    name: 'Text statistics',
    description: 'Counts the lines, words and bytes of a text and gives its SHA-256.',
    idempotent: true,
    sideEffect: 'none',
    tags: ['text'],
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'The text itself.' },
        bytes: { type: 'string', description: 'Or its bytes, as base64.', pattern: '^[A-Za-z0-9+/]*={0,2}$' },
        file: { type: 'string', description: 'Where it comes from; not opened.' }
      },
      anyOf: [{ required: ['text'] }, { required: ['bytes'] }]
    },
    outputSchema: {
      type: 'object',
      required: ['lines', 'words', 'bytes', 'sha256'],
      properties: {
        lines: { type: 'integer', minimum: 0 },
        words: { type: 'integer', minimum: 0 },
        bytes: { type: 'integer', minimum: 0 },
        sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' }
      }
    }
  }
]

/**
 * `text.stats`: a line ends with a newline, and a rest after the last newline is a line too. A word is a run of
 * characters that are no white space. `sha256` is of the bytes (UTF-8 for a text).
 */
export function textStats(input: unknown): AgentOutcome {
  if (!isRecord(input)) return failure('TASK_FAILED', 'the input must be an object with text or bytes')
  const { text, bytes } = input
  if (typeof text === 'string') return { ok: true, result: countText(text, Buffer.from(text, 'utf8')) }
  if (typeof bytes !== 'string') return failure('TASK_FAILED', 'the input has neither text nor bytes')
  const raw = Buffer.from(bytes, 'base64')
  return { ok: true, result: countText(raw.toString('utf8'), raw) }
}

function countText(text: string, raw: Uint8Array): { lines: number; words: number; bytes: number; sha256: string } {
  let newlines = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) newlines++
  const nextWord = /\S+/g
  let words = 0
  while (nextWord.test(text)) words++
  const lines = text === '' || text.endsWith('\n') ? newlines : newlines + 1
  return { lines, words, bytes: raw.length, sha256: createHash('sha256').update(raw).digest('hex') }
}
