import { NodeError } from '../../kit/errors.js'
import { type JsonLimits, SIZED_LIMITS } from '../../kit/json.js'

/** The one Host header of the control API; a web page cannot send it. */
export const CONTROL_HOST = 'a2a-node'
/** Prefix of calls: `POST /v0/call/<name>`, JSON parameters, JSON result. */
export const CALL_PATH = '/v0/call/'
/** Prefix of watches: `POST /v0/watch/<name>`, JSON parameters, NDJSON until the client or the watch ends. */
export const WATCH_PATH = '/v0/watch/'
/** Prefix of streams: `POST /v0/open/<protocol>` with `Upgrade: <protocol>`, then raw bytes both ways. */
export const OPEN_PATH = '/v0/open/'
/**
 * Header with the `timeoutMs` of a call: a whole number of milliseconds, 1 to 30 days. Any other value counts as none.
 */
export const TIMEOUT_HEADER = 'a2a-timeout-ms'
/**
 * Query parameter of a stream with the rights of its caller, as JSON; absent: the operator's. It is in the path since a
 * node of an earlier build refuses the unknown path, and would ignore a header.
 */
export const CALLER_PARAM = 'caller'

const MIB = 1_048_576
/** Largest request body in bytes, by call; {@link BODY_MAX} for all others. */
const LARGE_BODIES: Readonly<Record<string, number>> = {
  'swarm.start': 64 * MIB,
  'swarm.preview': 64 * MIB,
  // An input of 16 MiB, its bytes as base64.
  'message.send': 24 * MIB,
  'message.call': 24 * MIB
}
/** Largest request body of most calls in bytes: 1 MiB. */
export const BODY_MAX = MIB

/** Largest body of a call or watch in bytes. */
export function bodyMax(name: string): number {
  return Object.hasOwn(LARGE_BODIES, name) ? (LARGE_BODIES[name] ?? BODY_MAX) : BODY_MAX
}

/** Bounds of parameters: a JSON value lies a few levels inside them. {@link bodyMax} bounds their bytes. */
export const PARAMS_LIMITS: JsonLimits = { ...SIZED_LIMITS, maxDepth: 36 }

/** The only member of a line that ends a watch with an error: `{"$error": ErrorBody}`. */
export const ERROR_LINE = '$error'

const MARKER = /^\$+bytes$/
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * A value in JSON's own types. Bytes become `{"$bytes": "<base64>"}`. An object of that form gets one more `$`, so that
 * every value can be restored. An unchanged value is returned itself, not a copy.
 */
export function toWire(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') }
  }
  return mapMembers(value, toWire, (key) => `$${key}`)
}

/** The reverse of {@link toWire}. @throws NodeError USAGE for a `$bytes` that is no base64. */
export function fromWire(value: unknown): unknown {
  if (hasMarker(value) && Object.hasOwn(value, '$bytes')) return bytesOf(value['$bytes'])
  return mapMembers(value, fromWire, (key) => key.slice(1))
}

function bytesOf(text: unknown): Uint8Array {
  if (typeof text !== 'string' || text.length % 4 !== 0 || !BASE64.test(text))
    throw new NodeError('USAGE', '$bytes takes base64 text')
  const bytes = Buffer.from(text, 'base64')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function hasMarker(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const keys = Object.keys(value)
  return keys.length === 1 && MARKER.test(keys[0] ?? '')
}

function mapMembers(value: unknown, map: (member: unknown) => unknown, rename: (key: string) => string): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const mapped = value.map(map)
    return mapped.every((one, i) => one === value[i]) ? value : mapped
  }
  const marked = hasMarker(value)
  const entries = Object.entries(value).map(([key, member]) => [marked ? rename(key) : key, map(member)] as const)
  const same = !marked && entries.every(([key, member]) => member === (value as Record<string, unknown>)[key])
  return same ? value : Object.fromEntries(entries)
}
