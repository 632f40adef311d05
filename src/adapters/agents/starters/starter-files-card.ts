import type { CapabilityDescriptor } from '../../../domain/card/card.js'

/** Characters of a pattern or text that `files.search` looks for, at most. */
export const MAX_PATTERN = 256
/** Bytes that `files.read` reads when the caller names no number. */
export const DEFAULT_READ_BYTES = 262_144
/** Bytes that `files.read` reads at most: as base64 they still fit one JSON string of 1 MiB. */
export const MAX_READ_BYTES = 786_432
/** Hits of `files.search` when the caller names no number. */
export const DEFAULT_HITS = 100
/** Hits of `files.search` at most. */
export const MAX_HITS = 1000

const PATH = {
  type: 'string',
  minLength: 1,
  maxLength: 4096,
  description: 'Absolute, or relative to a granted directory.'
}
const COMMON = { idempotent: true, sideEffect: 'read', tags: ['files'] } as const

/** Capabilities of the starter agent `files`. */
export const FILES_CAPABILITIES: readonly CapabilityDescriptor[] = [
  {
    ...COMMON,
    id: 'files.search',
    name: 'Search files',
    description:
      'Finds files by a glob over their paths, or lines that hold a text, in the granted directories (.git and node_modules left out).',
    inputSchema: {
      type: 'object',
      properties: {
        pattern: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_PATTERN,
          description: 'Glob such as **/*.ts; without a slash it is compared with file names.'
        },
        text: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_PATTERN,
          description: 'Text to look for, as it is; with a pattern only in the files that fit it.'
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_HITS,
          description: `Hits at most; ${DEFAULT_HITS} when missing.`
        }
      },
      anyOf: [{ required: ['pattern'] }, { required: ['text'] }]
    },
    outputSchema: {
      type: 'object',
      required: ['hits', 'truncated'],
      properties: {
        hits: {
          type: 'array',
          items: {
            type: 'object',
            required: ['path'],
            properties: { path: { type: 'string' }, line: { type: 'integer', minimum: 1 }, text: { type: 'string' } }
          }
        },
        truncated: { type: 'boolean', description: 'A limit ended the search; there may be more.' }
      }
    }
  },
  {
    ...COMMON,
    id: 'files.read',
    name: 'Read a file',
    description: 'Reads the beginning of one file in the granted directories.',
    inputSchema: {
      type: 'object',
      required: ['path'],
      properties: {
        path: PATH,
        maxBytes: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_READ_BYTES,
          description: `${DEFAULT_READ_BYTES} when missing.`
        }
      }
    },
    outputSchema: {
      type: 'object',
      required: ['path', 'size', 'truncated'],
      properties: {
        path: { type: 'string' },
        size: { type: 'integer', minimum: 0 },
        truncated: { type: 'boolean' },
        text: { type: 'string', description: 'The content, when it is UTF-8.' },
        bytes: { type: 'string', description: 'The content as base64, when it is not.' }
      },
      oneOf: [{ required: ['text'] }, { required: ['bytes'] }]
    }
  },
  {
    ...COMMON,
    id: 'files.stat',
    name: 'Describe a file',
    description: 'Tells type, size and time of one file or directory in the granted directories.',
    inputSchema: { type: 'object', required: ['path'], properties: { path: PATH } },
    outputSchema: {
      type: 'object',
      required: ['path', 'type', 'size', 'modifiedAt'],
      properties: {
        path: { type: 'string' },
        type: { enum: ['file', 'directory', 'other'] },
        size: { type: 'integer', minimum: 0 },
        modifiedAt: { type: 'string' }
      }
    }
  }
]
