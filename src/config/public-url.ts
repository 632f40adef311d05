import { z } from 'zod'

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
