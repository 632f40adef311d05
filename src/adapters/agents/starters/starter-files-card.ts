import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import { MAX_FILE_BYTES, MAX_RANGE_BYTES } from '../../../kit/transfer/limits.js'
import { MAX_ENTRIES } from './files-limits.js'

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
const OFFSET = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const SHA256 = { type: 'string', pattern: '^[0-9a-f]{64}$' } as const
/** The members that name an upload; the same in each of its calls. */
const UPLOAD = {
  path: { ...PATH, description: 'Absolute, or relative to a directory granted for writing. Its directory exists.' },
  size: { type: 'integer', minimum: 0, maximum: MAX_FILE_BYTES, description: 'Bytes of the whole file.' },
  sha256: { ...SHA256, description: 'Of the whole file.' },
  force: { type: 'boolean', description: 'Replace an existing file; false when missing.' }
}
const UPLOADED = {
  path: { type: 'string' },
  offset: { type: 'integer', minimum: 0, description: 'Bytes that are there.' },
  done: { type: 'boolean', description: 'The file is in its place.' }
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
    description: 'Reads the beginning of one file in the granted directories, or a range of its bytes.',
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
        },
        offset: { ...OFFSET, description: 'Begin of a range, which comes as bytes.' },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_RANGE_BYTES,
          description: `Bytes of the range; ${MAX_RANGE_BYTES} when missing.`
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
        offset: { ...OFFSET, description: 'As asked for.' },
        modifiedAt: { type: 'string' },
        text: { type: 'string', description: 'The content, when it is UTF-8.' },
        bytes: { type: 'string', description: 'A range, or content that is not UTF-8, as base64.' }
      },
      oneOf: [{ required: ['text'] }, { required: ['bytes'] }]
    }
  },
  {
    ...COMMON,
    id: 'files.stat',
    name: 'Describe a file',
    description: 'Gives type, size, time and SHA-256 of one file or directory in the granted directories.',
    inputSchema: {
      type: 'object',
      required: ['path'],
      properties: {
        path: PATH,
        sha256: { type: 'boolean', description: 'Also the hash of a file; false when missing.' }
      }
    },
    outputSchema: {
      type: 'object',
      required: ['path', 'type', 'size', 'modifiedAt'],
      properties: {
        path: { type: 'string' },
        type: { enum: ['file', 'directory', 'other'] },
        size: { type: 'integer', minimum: 0 },
        modifiedAt: { type: 'string' },
        sha256: SHA256
      }
    }
  },
  {
    ...COMMON,
    id: 'files.list',
    name: 'List a directory',
    description: 'Lists one directory by name; without a path the granted directories.',
    inputSchema: { type: 'object', properties: { path: PATH } },
    outputSchema: {
      type: 'object',
      required: ['path', 'entries', 'truncated'],
      properties: {
        path: { type: 'string', description: 'Empty for the granted directories.' },
        entries: {
          type: 'array',
          maxItems: MAX_ENTRIES,
          items: {
            type: 'object',
            required: ['name', 'type', 'size', 'modifiedAt'],
            properties: {
              name: { type: 'string' },
              type: { enum: ['file', 'directory', 'other'] },
              size: { type: 'integer', minimum: 0 },
              modifiedAt: { type: 'string' }
            }
          }
        },
        truncated: { type: 'boolean', description: 'There are more.' }
      }
    }
  },
  {
    ...COMMON,
    id: 'files.write',
    name: 'Begin to write a file',
    description:
      'Opens the upload of one file into the directories granted for writing, or finds it again; files.append sends its bytes.',
    sideEffect: 'write',
    inputSchema: { type: 'object', required: ['path', 'size', 'sha256'], properties: UPLOAD },
    outputSchema: {
      type: 'object',
      required: ['path', 'offset', 'sha256', 'done'],
      properties: {
        ...UPLOADED,
        sha256: { ...SHA256, description: 'Of the bytes that are there.' }
      }
    }
  },
  {
    ...COMMON,
    id: 'files.append',
    name: 'Send bytes of a file',
    description:
      'Adds a range to an upload that files.write opened for the same caller; the last one puts the file in its place if size and SHA-256 fit.',
    inputSchema: {
      type: 'object',
      required: ['path', 'size', 'sha256', 'offset', 'bytes'],
      properties: {
        ...UPLOAD,
        offset: { ...OFFSET, description: 'At most the number of bytes that are there.' },
        bytes: {
          type: 'string',
          maxLength: (MAX_RANGE_BYTES / 3) * 4,
          description: `At most ${MAX_RANGE_BYTES} bytes as base64; empty to ask for the state.`
        }
      }
    },
    outputSchema: { type: 'object', required: ['path', 'offset', 'done'], properties: { ...UPLOADED, sha256: SHA256 } }
  }
]
