import { z } from 'zod'
import type { Setting } from './settings.js'

const MAX_URL = 512

/** Allowed values of `http.publicUrl`, for people. */
export const PUBLIC_URL_ALLOWED = `http:// or https:// and a host that clients know, with or without a port and a path, without a query, a fragment or a user, at most ${MAX_URL} characters`

/** `http.publicUrl`, as URLs are spelled: the host in lower case, no default port, no slash at the end. */
export const publicUrlSchema: z.ZodType<string | null> = z
  .string()
  .max(MAX_URL)
  .refine(isPublicUrl)
  .transform(spelled)
  .nullable()

function isPublicUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s/?#@\\][^\s?#@\\]*$/i.test(text) || !URL.canParse(text)) return false
  const { hostname, port } = new URL(text)
  // Addresses that a listener can bind but no client can reach.
  return hostname !== '0.0.0.0' && hostname !== '[::]' && port !== '0'
}

function spelled(text: string): string {
  const { origin, pathname } = new URL(text)
  return origin + pathname.replace(/\/+$/, '')
}

/** `host:port` with a port from 1 to 65535. */
export const hostPort = z.string().max(262).refine(isHostPort)

/** Is it `host:port` with a port from 1 to 65535? */
function isHostPort(text: string): boolean {
  const match = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(\d{1,5})$/.exec(text)
  const port = Number(match?.[1] ?? 0)
  return port >= 1 && port <= 65_535
}

/**
 * Where a listener is bound: `PORT` or `HOST:PORT`, a port from 0 (a free one) to 65535; null for anything else.
 */
export function listenAddress(text: string): { readonly host: string; readonly port: number } | null {
  const match = /^(?:([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[2] ?? Number.NaN)
  if (!(port <= 65_535)) return null
  return { host: (match?.[1] ?? '127.0.0.1').replace(/^\[|\]$/g, ''), port }
}

/** The address of a listener; a port alone may be a number. */
export const listenSchema: z.ZodType<string | null> = z
  .union([z.int().min(0).max(65_535).transform(String), z.string().refine((text) => listenAddress(text) !== null)])
  .nullable()

/** The setting `a2a.grpc`. */
export const GRPC_LISTEN: Setting<string | null> = {
  schema: listenSchema,
  fallback: null,
  form: 'text',
  unit: null,
  allowed: '[host:]port, a port from 0 (a free one) to 65535; without a host this machine only (127.0.0.1)',
  about: 'Serve A2A over gRPC here, by the tokens and limits of HTTP; every call needs a token. null: no gRPC.'
}

/** The setting `a2a.grpcPublic`. */
export const GRPC_PUBLIC: Setting<string | null> = {
  schema: hostPort.nullable(),
  fallback: null,
  form: 'text',
  unit: null,
  allowed: 'host:port with a port from 1 to 65535',
  about: 'Where clients reach gRPC, as cards name it. null: where it is bound.'
}
