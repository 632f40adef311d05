import { z } from 'zod'
import { shown } from '../kit/text.js'
import { referenceFault } from './references.js'

/** Replacement for a hidden value. */
export const HIDDEN = '(hidden)'
/** A value that is read from the environment of the node: `env:NAME`, `${NAME}` or `Bearer ${NAME}`. */
const REFERENCE = /^(?:env:[A-Za-z_][A-Za-z0-9_]*|(?:(?:Bearer|Basic|Token) )?\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*\})$/

/** A text of 1 to `max` characters. */
export const text = (max: number): z.ZodType<string> =>
  z.string('must be text').min(1, 'must not be empty').max(max, `has more than ${max} characters`)

/** A whole number within bounds, or a text that `parse` takes for one; `rule` says what is allowed. */
export function unit(
  rule: string,
  parse: (text: string) => number | null,
  [min, max]: readonly [number, number]
): z.ZodType<number> {
  return z.unknown().transform((value, context) => {
    const number = typeof value === 'string' ? parse(value) : value
    if (Number.isInteger(number) && (number as number) >= min && (number as number) <= max) return number as number
    context.addIssue(rule)
    return z.NEVER
  })
}

/** Refuses a text with a `${...}` that no environment can resolve. */
export function checkReferences(value: string, context: { addIssue(message: string): void }): void {
  const fault = referenceFault(value)
  if (fault !== null) context.addIssue(fault)
}

/** The characters of a header: no control characters, and nothing beyond Latin-1. */
export const HEADER_VALUE = /^[ -~\u00a0-\u00ff]*$/

/** A header value or a key. */
export const headerValue: z.ZodType<string> = z
  .string('must be text')
  .max(8192)
  .regex(HEADER_VALUE, 'has characters that no header has')
  .superRefine(checkReferences)

/** Headers of requests; none when absent. */
export const headers = z
  .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'is no name of a header'), headerValue)
  .default({})

/** An http or https address without a password. */
export const httpUrl = text(2048).superRefine(checkWebUrl)

/**
 * An http or https address, or one that is complete after its `${...}` are resolved; {@link webUrlFault} judges it
 * then.
 */
export const httpUrlWithReferences = text(2048).superRefine((value, context) =>
  value.includes('${') ? checkReferences(value, context) : checkWebUrl(value, context)
)

function checkWebUrl(value: string, context: { addIssue(message: string): void }): void {
  const fault = value.includes('${') ? 'takes no ${...} here: write the address' : webUrlFault(value)
  if (fault !== null) context.addIssue(fault)
}

/** The fault of an address that is not http or https, or holds a password; null for none. */
export function webUrlFault(value: string): string | null {
  const parsed = URL.canParse(value) ? new URL(value) : null
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return 'must be an http or https address'
  return parsed.username !== '' || parsed.password !== '' ? 'must not hold a password: use headers' : null
}

/** A URL of an agent of another member of the mesh. */
const MESH_URL = /^a2a-mesh:\/\/[^/?#@:\s]{1,256}(?:\/agents\/[^/?#\s]+|\/a2a)?\/?$/i

/** A URL that names an A2A agent: over the web, or an agent of another member. */
export const agentUrl = text(2048).superRefine((value, context) => {
  if (!/^a2a-mesh:/i.test(value)) checkWebUrl(value, context)
  else if (!MESH_URL.test(value))
    context.addIssue('must be a2a-mesh://<node>/agents/<id>, with the key or the name of the node')
})

/** A URL for display: its query may hold a secret. */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, `?${HIDDEN}`)
}

/** A value for display: only names of variables are visible. */
export function shownSecret(value: string): string {
  return REFERENCE.test(value) ? value : HIDDEN
}

/** Values by name for display. */
export function hideValues(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shownSecret(value)]))
}

/** Faults of a mapping of entries: the path below the setting and the reason, never the values. */
export function entryFaults(
  error: z.ZodError
): readonly { readonly path: readonly PropertyKey[]; readonly reason: string }[] {
  return error.issues.slice(0, 32).map((issue) => {
    // The names of keys that are not known stand beside the place of their mapping.
    if (issue.code === 'unrecognized_keys')
      return { path: [...issue.path, ...issue.keys.slice(0, 1)], reason: 'no such key' }
    if (issue.code === 'invalid_key') return { path: issue.path, reason: issue.issues[0]?.message ?? 'is no name' }
    return { path: issue.path, reason: shown(issue.message) }
  })
}
