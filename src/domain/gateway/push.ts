import { z } from 'zod'
import { isRecord } from '../../kit/json.js'
import { MAX_CLIENT_ID, type MessageRead } from './message.js'
import { readBy } from './schema-read.js'
import { GATEWAY_STATES, type GatewayEvent } from './task.js'

/** Push configs of one task. */
export const MAX_PUSH_CONFIGS = 10
/** Characters of the URL of a push config. */
export const MAX_PUSH_URL = 2048
/** Characters of its token. */
export const MAX_PUSH_TOKEN = 1024
/** Characters of its credentials, or of the secret of its signatures. */
export const MAX_PUSH_CREDENTIALS = 4096
/** Characters that the secret of signatures has at least. */
export const MIN_PUSH_SECRET = 16
/** Names of events, and schemes, that one config may have. */
const MAX_NAMES = 16

/** Subscribable events: states of a task, pieces of its artifacts, or all. */
const PUSH_EVENTS = ['task.*', 'task.artifact', ...GATEWAY_STATES.map((state) => `task.${state}`)]

/** Scheme of `authentication` whose credentials are not sent: they are the secret by which notifications are signed. */
export const HMAC_SCHEME = 'hmac-sha256'

/** The protocol version of a webhook's JSON. */
export type PushVersion = '1.0' | '0.3'

/** A webhook for events of a task. */
export interface PushTarget {
  /** Chosen by the client; left out: by the node. */
  readonly id?: string
  readonly url: string
  /** Sent along, so that its client knows whom it comes from. */
  readonly token?: string
  /** Of the schemes the first one counts. */
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string }
  /** Names of events, `task.*` for all; left out: all. */
  readonly events?: readonly string[]
}

/** A push config as it is kept. */
export interface PushHook extends PushTarget {
  readonly id: string
  /** Internal id of the config: a later config with the same client id has another one. */
  readonly hook: string
  readonly task: string
  readonly version: PushVersion
}

/** A waiting notification. Its key identifies it: hook and generation of the event. */
export interface PushNotice {
  readonly task: string
  readonly event: string
  readonly at: number
  readonly tries: number
  /** Not before then. */
  readonly dueAt: number
  /** Why the last try failed. */
  readonly reason?: string
  /** Earlier events that it reports as well, since too many waited; absent for none. */
  readonly folded?: number
}

/** A notification that was given up. */
export interface DeadLetter extends Omit<PushNotice, 'dueAt'> {
  readonly reason: string
  readonly deadAt: number
}

const visible = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII')

const target = z.object({
  id: z
    .string()
    .max(MAX_CLIENT_ID)
    .regex(/^[^/\s\p{C}]+$/u, 'must be a text without spaces and slashes')
    .optional(),
  url: z.string().min(1).max(MAX_PUSH_URL),
  token: visible(MAX_PUSH_TOKEN).optional(),
  authentication: z
    .object({
      schemes: z
        .array(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, 'must be the name of a scheme'))
        .min(1)
        .max(MAX_NAMES),
      credentials: visible(MAX_PUSH_CREDENTIALS).optional()
    })
    .refine(({ schemes, credentials = '' }) => !isSigned(schemes) || isSecret(credentials), {
      path: ['credentials'],
      message: `must be a secret of at least ${MIN_PUSH_SECRET} characters, or whsec_ and base64`
    })
    .optional(),
  events: z
    .array(z.enum(PUSH_EVENTS, `must be one of ${PUSH_EVENTS.join(', ')}`))
    .min(1)
    .max(MAX_NAMES)
    .optional()
})

/** Reads a client's push config. Total. */
export function readPushTarget(value: unknown): MessageRead<PushTarget> {
  return readBy(target, isRecord(value) ? value : {}) as MessageRead<PushTarget>
}

/** Is the first scheme the one whose credentials sign? */
export function isSigned(schemes: readonly string[]): boolean {
  return schemes[0]?.toLowerCase() === HMAC_SCHEME
}

function isSecret(text: string): boolean {
  return text.startsWith('whsec_') ? /^whsec_[A-Za-z0-9+/]{16,}={0,2}$/.test(text) : text.length >= MIN_PUSH_SECRET
}

/**
 * Name of an event for a hook of a version; null: not sent. Hooks of 0.3 get whole tasks, so of chunks only the last.
 */
export function pushEventOf(event: GatewayEvent, version: PushVersion): string | null {
  if (event.type === 'status') return `task.${event.state}`
  return event.type === 'artifact' && (version === '1.0' || event.lastChunk) ? 'task.artifact' : null
}

/** Does a hook ask for an event? */
export function asksFor({ events }: Pick<PushTarget, 'events'>, event: string): boolean {
  return events === undefined || events.includes('task.*') || events.includes(event)
}
