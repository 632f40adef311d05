import { messageOf } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome } from '../../../ports/agent-runtime.js'

/** Most characters of the error text of a remote agent. */
export const MAX_FAULT_TEXT = 2000

/**
 * State of the message after a failure. `unsent`: it did not reach the agent. `refused`: the agent did not begin it.
 * `busy`: not begun, the agent is overloaded. `answered`: the agent returned an error. `unknown`: it may have been
 * done.
 */
export type RemoteFaultKind = 'unsent' | 'refused' | 'busy' | 'answered' | 'unknown'

/** A failed call of a remote agent. */
export class RemoteFault extends Error {
  readonly kind: RemoteFaultKind
  /** The A2A reason, e.g. `TASK_NOT_FOUND`; null when the agent gave none. */
  readonly reason: string | null
  /** Message for callers, without addresses; `message` is for the node itself. */
  readonly printed: string

  constructor(
    kind: RemoteFaultKind,
    message: string,
    { reason = null, printed = message }: { readonly reason?: string | null; readonly printed?: string } = {}
  ) {
    super(shown(message, MAX_FAULT_TEXT))
    this.name = 'RemoteFault'
    this.kind = kind
    this.reason = reason
    this.printed = shown(printed, MAX_FAULT_TEXT)
  }
}

/** A refused address. Callers do not see the reason, which would reveal the address. */
export function refusedAddress(why: string, what = 'the address is refused'): RemoteFault {
  return new RemoteFault('unsent', `${what}: ${why}`, { printed: what })
}

/** A network failure. Callers see its code only, since its text has addresses. */
export function networkFault(kind: RemoteFaultKind, error: unknown, before = ''): RemoteFault {
  const code: unknown = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  const known = typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : null
  const words = messageOf(error)
  const message = words === '' ? (known ?? 'the connection failed') : words
  return new RemoteFault(kind, before + message, { printed: before + (known ?? 'the connection failed') })
}

/** JSON-RPC codes and A2A reasons that mean that the agent did not begin. */
const NOT_BEGUN = new Set([
  'TASK_NOT_FOUND',
  'UNSUPPORTED_OPERATION',
  'CONTENT_TYPE_NOT_SUPPORTED',
  'EXTENSION_SUPPORT_REQUIRED',
  'VERSION_NOT_SUPPORTED',
  'INVALID_PARAMS'
])

const DENIED = 'CREDENTIALS'

/** The fault of an agent that wants other credentials. */
export function deniedFault(status: number): RemoteFault {
  return new RemoteFault('refused', `it wants other credentials (HTTP ${status})`, { reason: DENIED })
}

/** Reads an error of the client library; `unknown` when the agent may have taken the message. */
export function remoteFaultOf(error: unknown): RemoteFault {
  for (let one: unknown = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) {
    if (one instanceof RemoteFault) return one
    const { reason } = one as { readonly reason?: unknown }
    if (typeof reason === 'string')
      return new RemoteFault(NOT_BEGUN.has(reason) ? 'refused' : 'answered', one.message, { reason })
  }
  const message = messageOf(error)
  const status = Number(/\b(?:[Ss]tatus|stream for \S+): (\d{3})\b/.exec(message)?.[1] ?? Number.NaN)
  if (status === 401 || status === 403) return deniedFault(status)
  if (status === 429) return new RemoteFault('busy', 'it has too much to do (HTTP 429)')
  if (status >= 400 && status < 500) return new RemoteFault('refused', message)
  return new RemoteFault('unknown', message)
}

/** Did the agent refuse the message itself, and not its sender? */
export function isRefusal({ kind, reason }: Pick<RemoteFault, 'kind' | 'reason'>): boolean {
  return kind === 'refused' && reason !== DENIED
}

/** The outcome of a failed call. */
export function failedRemote(
  agent: string,
  { kind, printed: message }: Pick<RemoteFault, 'kind' | 'printed'>
): AgentOutcome {
  const printed = {
    unsent: `the A2A agent ${agent} was not reached, and nothing was done: ${message}`,
    refused: `the A2A agent ${agent} refused the message, and nothing was done: ${message}`,
    busy: `the A2A agent ${agent} refused the message, and nothing was done: ${message}`,
    answered: `the A2A agent ${agent} answered with an error: ${message}`,
    unknown: `the A2A agent ${agent} was lost while it had the message: it may have done it, and is not asked again. ${message}`
  }[kind]
  const known =
    kind === 'unknown' ? { isUnknown: true } : kind === 'unsent' || kind === 'busy' ? { retryable: true } : {}
  return { ok: false, code: 'TASK_FAILED', message: printed, ...known }
}
