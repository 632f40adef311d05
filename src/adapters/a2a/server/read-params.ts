import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { Message, MessageFault } from '../../../domain/gateway/message.js'
import { readMessage } from '../../../domain/gateway/message.js'
import { A2AFault, type FieldViolation } from './fault.js'
import type { ListParams } from './wire.js'

/** Default and largest number of tasks on a page. */
export const PAGE_SIZE = { default: 50, max: 100 } as const
/** Largest `historyLength` of a request. */
const MAX_HISTORY = 10_000

/** The parameters as an object. `name`: the member of them, for errors. @throws A2AFault */
export function recordOf(value: unknown, name = 'params'): Record<string, unknown> {
  if (!isRecord(value)) throw invalid(name, 'must be an object')
  return value
}

/** A required text. @throws A2AFault */
export function textOf(params: Record<string, unknown>, name: string): string {
  const value = params[name]
  if (typeof value !== 'string' || value === '' || value.length > 256)
    throw invalid(name, 'must be a text of 1 to 256 characters')
  return value
}

/** An optional text; undefined when empty. @throws A2AFault */
export function optionalText(params: Record<string, unknown>, name: string): string | undefined {
  const value = params[name]
  if (value === undefined || value === null || value === '') return undefined
  return textOf(params, name)
}

/** An optional whole number. @throws A2AFault */
export function optionalCount(
  params: Record<string, unknown>,
  name: string,
  [min, max]: readonly [number, number]
): number | undefined {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw invalid(name, `must be a whole number of ${min} to ${max}`)
  return value
}

/** An optional boolean. `place`: prefix of its name in errors. @throws A2AFault */
export function optionalFlag(params: Record<string, unknown>, name: string, place = ''): boolean | undefined {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'boolean') throw invalid(`${place}${name}`, 'must be true or false')
  return value
}

/** An optional `historyLength`; null when absent. @throws A2AFault */
export function historyLength(params: Record<string, unknown>): number | null {
  return optionalCount(params, 'historyLength', [0, MAX_HISTORY]) ?? null
}

/** The last event that a client has, by its `Last-Event-ID`; null: no reconnect. @throws A2AFault */
export function lastEventIdOf(text: string | readonly string[] | undefined): number | null {
  if (text === undefined || text === '') return null
  // A longer number is beyond any possible event.
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text))
    throw invalid('Last-Event-ID', 'must be the id of an event of the task')
  return Number(text)
}

/** Names of message roles in a version. */
export type RoleNames = Readonly<Record<Message['role'], string>>

/** Roles of this node and of the JSON-RPC of 0.3. */
export const ROLES: RoleNames = { user: 'user', agent: 'agent' }

/** Translation of the faults of a message to a version. */
export interface MessageWords {
  readonly roles: RoleNames
  /** Translates the fault of a part. */
  part(fault: MessageFault): MessageFault
}

/** Faults in the terms of this node, whose parts have the form of 1.0. */
const WORDS: MessageWords = { roles: ROLES, part: (fault) => fault }

/** Reads a message in the form of this node. @throws A2AFault with all faults, in the terms of the client's version */
export function messageOf(value: unknown, { roles: { user, agent }, part } = WORDS): Message {
  const read = readMessage(value)
  if (!read.ok) {
    const printed = (fault: MessageFault): MessageFault =>
      fault.path === 'message.role' ? { path: fault.path, message: `must be ${user} or ${agent}` } : part(fault)
    throw faultyAt('', read.faults.map(printed))
  }
  if (read.value.role !== 'user') throw invalid('message.role', `must be ${user}: clients speak for users`)
  return read.value
}

/** The skill that a request names; the message takes precedence over the request. @throws A2AFault */
export function skillOf(params: Record<string, unknown>, message: Message): string | null {
  const ofMessage = skillIn(message.metadata ?? null, 'message.metadata')
  const ofRequest = skillIn(params['metadata'] ?? null, 'metadata')
  return ofMessage ?? ofRequest
}

/** An invalid skill is an error; ignoring it would run another skill. */
function skillIn(value: unknown, place: string): string | null {
  if (value === null) return null
  const metadata = recordOf(value, place)
  const name = (metadata['skillId'] ?? null) === null ? 'skill' : 'skillId'
  const skill = metadata[name] ?? ''
  if (typeof skill !== 'string' || skill.length > 256)
    throw invalid(`${place}.${name}`, 'must be a text of 1 to 256 characters')
  return skill === '' ? null : skill
}

/** Parameters of a list. Clients send their tenant and metadata too. */
const LIST_PARAMS: ReadonlySet<string> = new Set([
  'contextId',
  'status',
  'statusTimestampAfter',
  'pageSize',
  'pageToken',
  'historyLength',
  'includeArtifacts',
  'tenant',
  'metadata'
])

/**
 * Reads the parameters of a list. An unknown filter is refused: without it, the list would show more than its client
 * wants.
 * @throws A2AFault
 */
export function readList(params: Record<string, unknown>): ListParams {
  const unknown = Object.keys(params).filter((name) => !LIST_PARAMS.has(name))
  if (unknown.length > 0)
    throw invalidAll(
      unknown.slice(0, 16).map((name) => ({ field: shown(name, 64), description: 'is no filter of a list' }))
    )
  const after = optionalText(params, 'statusTimestampAfter')
  const since = after === undefined ? undefined : Date.parse(after)
  if (since !== undefined && Number.isNaN(since)) throw invalid('statusTimestampAfter', 'must be an ISO 8601 time')
  const [contextId, state] = [optionalText(params, 'contextId'), optionalText(params, 'status')]
  return {
    ...(contextId === undefined ? {} : { contextId }),
    ...(state === undefined ? {} : { state }),
    ...(since === undefined ? {} : { since }),
    pageSize: optionalCount(params, 'pageSize', [1, PAGE_SIZE.max]) ?? PAGE_SIZE.default,
    pageToken: optionalText(params, 'pageToken') ?? '',
    historyLength: historyLength(params) ?? 0,
    includeArtifacts: optionalFlag(params, 'includeArtifacts') ?? false
  }
}

/** The fault of an invalid parameter. */
export function invalid(name: string, why: string): A2AFault {
  return invalidAll([{ field: name, description: why }])
}

/** The fault of invalid parameters. `place`: prefix of their names. */
export function faultyAt(place: string, faults: readonly MessageFault[]): A2AFault {
  return invalidAll(faults.map(({ path, message }) => ({ field: `${place}${path}`, description: message })))
}

function invalidAll(violations: readonly FieldViolation[]): A2AFault {
  return new A2AFault(
    'INVALID_PARAMS',
    violations.map(({ field, description }) => `${field}: ${description}`).join('; '),
    { violations }
  )
}
