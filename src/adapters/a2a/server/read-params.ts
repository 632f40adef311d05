import { isRecord } from '../../../kit/json.js'
import type { Message, MessageFault } from '../../../domain/gateway/message.js'
import { readMessage } from '../../../domain/gateway/message.js'
import { A2AFault, type FieldViolation } from './fault.js'
import type { ListParams } from './wire.js'

/** Tasks of a page when the client names no number, and at most. */
export const PAGE_SIZE = { default: 50, max: 100 } as const
/** History that a client may ask for. */
const MAX_HISTORY = 10_000

/** The parameters, or a member of them that has a name, as an object. @throws A2AFault */
export function recordOf(value: unknown, name = 'params'): Record<string, unknown> {
  if (!isRecord(value)) throw invalid(name, 'must be an object')
  return value
}

/** A text that must be there. @throws A2AFault */
export function textOf(params: Record<string, unknown>, name: string): string {
  const value = params[name]
  if (typeof value !== 'string' || value === '' || value.length > 256) throw invalid(name, 'must be a text of 1 to 256 characters')
  return value
}

/** A text that may be left out, or be empty. @throws A2AFault */
export function optionalText(params: Record<string, unknown>, name: string): string | undefined {
  const value = params[name]
  if (value === undefined || value === null || value === '') return undefined
  return textOf(params, name)
}

/** A whole number that may be left out. @throws A2AFault */
export function optionalCount(params: Record<string, unknown>, name: string, [min, max]: readonly [number, number]): number | undefined {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
    throw invalid(name, `must be a whole number of ${min} to ${max}`)
  return value
}

/** True or false, which may be left out. `place`: what stands before its name. @throws A2AFault */
export function optionalFlag(params: Record<string, unknown>, name: string, place = ''): boolean | undefined {
  const value = params[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'boolean') throw invalid(`${place}${name}`, 'must be true or false')
  return value
}

/** @throws A2AFault */
export function historyLength(params: Record<string, unknown>): number | null {
  return optionalCount(params, 'historyLength', [0, MAX_HISTORY]) ?? null
}

/** The number of the event behind which a client goes on, by its `Last-Event-ID`; null: it was not there before. @throws A2AFault */
export function lastEventIdOf(text: string | readonly string[] | undefined): number | null {
  if (text === undefined || text === '') return null
  // One that is longer is behind anything that could have happened.
  if (typeof text !== 'string' || !/^\d{1,15}$/.test(text)) throw invalid('Last-Event-ID', 'must be the id of an event of the task')
  return Number(text)
}

/** What the roles of messages are called by a version. */
export type RoleNames = Readonly<Record<Message['role'], string>>

/** As this node and the JSON-RPC of 0.3 call them. */
export const ROLES: RoleNames = { user: 'user', agent: 'agent' }

/** How a version says what is wrong with a message. */
export interface MessageWords {
  readonly roles: RoleNames
  /** A fault of a part. */
  part(fault: MessageFault): MessageFault
}

/** As this node, which has parts in the form of 1.0, says it. */
const WORDS: MessageWords = { roles: ROLES, part: (fault) => fault }

/** A message in the form of this node; what is wrong with it is told in the words of its client. @throws A2AFault with all that is wrong */
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

/** The skill that a request names: the message goes before the request. @throws A2AFault */
export function skillOf(params: Record<string, unknown>, message: Message): string | null {
  const ofMessage = skillIn(message.metadata ?? null, 'message.metadata')
  const ofRequest = skillIn(params['metadata'] ?? null, 'metadata')
  return ofMessage ?? ofRequest
}

/** One that is no text is not left out in silence: another skill would run. */
function skillIn(value: unknown, place: string): string | null {
  if (value === null) return null
  const metadata = recordOf(value, place)
  const name = (metadata['skillId'] ?? null) === null ? 'skill' : 'skillId'
  const skill = metadata[name] ?? ''
  if (typeof skill !== 'string' || skill.length > 256) throw invalid(`${place}.${name}`, 'must be a text of 1 to 256 characters')
  return skill === '' ? null : skill
}

/** What a list is asked for. @throws A2AFault */
export function readList(params: Record<string, unknown>): ListParams {
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

/** A parameter that cannot be taken. */
export function invalid(name: string, why: string): A2AFault {
  return invalidAll([{ field: name, description: why }])
}

/** Parameters that cannot be taken. `place`: what stands before their names. */
export function faultyAt(place: string, faults: readonly MessageFault[]): A2AFault {
  return invalidAll(faults.map(({ path, message }) => ({ field: `${place}${path}`, description: message })))
}

function invalidAll(violations: readonly FieldViolation[]): A2AFault {
  return new A2AFault('INVALID_PARAMS', violations.map(({ field, description }) => `${field}: ${description}`).join('; '), { violations })
}
