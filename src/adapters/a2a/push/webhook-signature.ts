import { createHash, createHmac } from 'node:crypto'
import type { IdSource } from '../../../kit/ids.js'
import type { Sign } from '../../../kit/sign.js'
import { isSigned, type PushHook } from '../../../domain/gateway/push.js'
import type { WebhookCall } from '../../../ports/webhooks.js'
import { WEBHOOK_TYPES } from './webhook-body.js'

/** Life of the token of a notification, in seconds. */
export const WEBHOOK_TOKEN_SECONDS = 300
/** Type of the token; no other signature of the node has it. */
const TOKEN_TYPE = 'a2a-notification+jwt'

/** Dependencies of {@link webhookHeaders}. */
export interface WebhookSigner {
  /** By the node's key. */
  readonly sign: Sign
  readonly nodeId: string
  /** URL of the node, below which its key set is. */
  readonly issuer: string
  readonly ids: IdSource
}

/**
 * The headers of one attempt: event and ids, token and credentials of the config, a signature by its secret (Standard
 * Webhooks: HMAC-SHA256 of `id.timestamp.body`), and a JWT by the node's key with a hash of the body (RFC 7519, RFC
 * 8037).
 */
export function webhookHeaders(
  hook: PushHook,
  call: WebhookCall,
  { signer, now }: { readonly signer: WebhookSigner; readonly now: number }
): Record<string, string> {
  const timestamp = Math.floor(now / 1000)
  const token = signedToken(signer, { hook, body: call.body, timestamp })
  const { schemes = [], credentials = '' } = hook.authentication ?? {}
  const [scheme = ''] = schemes
  const isHmac = isSigned(schemes)
  // Scheme bearer without credentials: the token of the node is sent.
  const bearer = credentials !== '' ? credentials : scheme.toLowerCase() === 'bearer' ? token : ''
  return {
    'content-type': WEBHOOK_TYPES[hook.version],
    'a2a-version': hook.version,
    'x-a2a-event': call.event,
    'webhook-id': call.id,
    'webhook-timestamp': String(timestamp),
    'x-a2a-notification-jwt': token,
    ...(isHmac ? { 'webhook-signature': `v1,${hmac(credentials, `${call.id}.${timestamp}.${call.body}`)}` } : {}),
    ...(hook.token === undefined ? {} : { 'x-a2a-notification-token': hook.token }),
    ...(isHmac || bearer === '' ? {} : { authorization: `${scheme} ${bearer}` })
  }
}

function signedToken(
  { sign, nodeId, issuer, ids }: WebhookSigner,
  { hook, body, timestamp }: { readonly hook: PushHook; readonly body: string; readonly timestamp: number }
): string {
  const claims = {
    iss: issuer,
    aud: hook.url,
    sub: hook.task,
    iat: timestamp,
    exp: timestamp + WEBHOOK_TOKEN_SECONDS,
    // New for each attempt: a retry must not look like a replay.
    jti: ids.next('jti'),
    request_body_sha256: createHash('sha256').update(body).digest('hex')
  }
  const text = [{ alg: 'EdDSA', kid: nodeId, typ: TOKEN_TYPE }, claims]
    .map((one) => base64url(JSON.stringify(one)))
    .join('.')
  return `${text}.${base64url(sign(Buffer.from(text)))}`
}

/** A secret of Standard Webhooks (`whsec_`) is base64, any other is used as text. */
function hmac(secret: string, text: string): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
  return createHmac('sha256', key).update(text).digest('base64')
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64url')
}
