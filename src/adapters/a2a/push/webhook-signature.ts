import { createHash, createHmac } from 'node:crypto'
import type { IdSource } from '../../../kit/ids.js'
import type { Sign } from '../../../kit/sign.js'
import { isSigned, type PushHook } from '../../../domain/gateway/push.js'
import type { WebhookCall } from '../../../ports/webhooks.js'
import { WEBHOOK_TYPES } from './webhook-body.js'

/** How long the token of a notification may be taken, in seconds. */
export const WEBHOOK_TOKEN_SECONDS = 300
/** Type of the token: that of nothing else that the node signs. */
const TOKEN_TYPE = 'a2a-notification+jwt'

/** What signs notifications. */
export interface WebhookSigner {
  /** By the node's key. */
  readonly sign: Sign
  readonly nodeId: string
  /** URL of the node, below which its key set is. */
  readonly issuer: string
  readonly ids: IdSource
}

/**
 * The headers of one try: what it is, the token and credentials of its config, a signature by its secret (Standard Webhooks:
 * HMAC-SHA256 of `id.timestamp.body`), and a token by the node's key that holds a hash of the body (RFC 7519, RFC 8037).
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
  // Who asks for a bearer and gives none means one of the node's.
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
    // Of each try another one: a second try must not look like a replay of the first.
    jti: ids.next('jti'),
    request_body_sha256: createHash('sha256').update(body).digest('hex')
  }
  const text = [{ alg: 'EdDSA', kid: nodeId, typ: TOKEN_TYPE }, claims].map((one) => base64url(JSON.stringify(one))).join('.')
  return `${text}.${base64url(sign(Buffer.from(text)))}`
}

/** A secret in the form of Standard Webhooks is bytes in base64, any other its text. */
function hmac(secret: string, text: string): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
  return createHmac('sha256', key).update(text).digest('base64')
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64url')
}
