import { isRecord } from '../../../kit/json.js'
import type { NodeApi } from '../../../ports/node-api.js'
import type { StructuredError } from './structured-error.js'

/** Members with values of agents, their schemas and contents of documents, which are passed on as they are. */
const VALUES: ReadonlySet<string> = new Set([
  ...['input', 'output', 'payload', 'result', 'examples'],
  ...['inputSchema', 'outputSchema', 'value']
])

/**
 * The API for a client that has no command line of this node: errors and problems in its answers are without `next`.
 * Thrown errors and watches are passed on as they are.
 */
export function withoutCommands(api: NodeApi): NodeApi {
  return {
    call: async (...call) => withoutNext(await api.call(...call)),
    watch: (...watch) => api.watch(...watch)
  }
}

/** The error of a call as its client may read it: a remote one gets no commands. */
export function errorFor(error: StructuredError, { isRemote }: { readonly isRemote?: boolean }): StructuredError {
  if (isRemote !== true || error.details === undefined) return error
  const { next: _, ...details } = error.details
  return { ...error, details }
}

function withoutNext<T>(value: T): T {
  if (Array.isArray(value)) return value.map((one: unknown) => withoutNext(one)) as T
  if (!isRecord(value)) return value
  const isError = typeof value['code'] === 'string' && typeof value['message'] === 'string'
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !(isError && key === 'next'))
      .map(([key, one]) => [key, VALUES.has(key) ? one : withoutNext(one)])
  ) as T
}
