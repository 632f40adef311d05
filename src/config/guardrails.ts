import { z } from 'zod'
import { messageOf } from '../kit/errors.js'

/** Patterns of one list. */
export const MAX_DENIED = 32
/** Characters of one pattern. */
export const MAX_PATTERN = 512
/**
 * Work of one side: the steps of its patterns, repetitions written out, times the characters of its longest text. About
 * 25 ns each at worst.
 */
export const MAX_PATTERN_WORK = 100_000_000
/** Longest text that a guardrail may let through, in characters. */
export const MAX_GUARDED = 16_777_216
/** Characters that agents may say where the config names no length. */
const DEFAULT_OUTPUT = 1_000_000

/** Rules for a text. */
export interface GuardrailSetting {
  /** Characters. */
  readonly maxLength: number
  /** Patterns (RE2 syntax) of which none may be found in it. */
  readonly deny: readonly string[]
}

/** Rules for inputs and outputs of agents. */
export interface GuardrailSettings {
  readonly input: GuardrailSetting
  readonly output: GuardrailSetting
}

/** How often one caller, or one address, may call. */
export interface RateLimitSetting {
  readonly perMinute: number
  /** At once, after a pause. */
  readonly burst: number
}

/** As shipped: length alone. */
export const GUARDRAILS: GuardrailSettings = {
  input: { maxLength: 100_000, deny: [] },
  output: { maxLength: DEFAULT_OUTPUT, deny: [] }
}

/** As shipped: what no program that waits for its answers comes to, and a loop that went wrong does. */
export const RATE_LIMIT: RateLimitSetting = { perMinute: 6000, burst: 1000 }

/**
 * As shipped: requests of one address to the HTTP listener without a valid token. Kits that poll cards stay below it;
 * OAuth clients meet their own limit first.
 */
export const ANONYMOUS_LIMIT: RateLimitSetting = { perMinute: 1200, burst: 200 }

/** As shipped: requests of one address with a wrong token. */
export const WRONG_TOKEN_LIMIT: RateLimitSetting = { perMinute: 60, burst: 30 }

const count = (fallback: number, max: number): z.ZodType<number> =>
  z.int('must be a whole number').min(1, 'must be at least 1').max(max, `must be at most ${max}`).default(fallback)

const guardrail = ({ maxLength }: GuardrailSetting): z.ZodType<GuardrailSetting> =>
  z
    .strictObject(
      {
        maxLength: count(maxLength, MAX_GUARDED),
        deny: z
          .array(
            z
              .string('must be text')
              .min(1, 'must not be empty')
              .max(MAX_PATTERN, `has more than ${MAX_PATTERN} characters`),
            'must be a list'
          )
          .max(MAX_DENIED, `has more than ${MAX_DENIED} patterns`)
          .default([])
      },
      { error: (issue) => (issue.code === 'invalid_type' ? 'must be a mapping of maxLength and deny' : undefined) }
    )
    .default({ maxLength, deny: [] })

const mapping = (keys: string) => ({
  error: (issue: { readonly code?: string | undefined }) =>
    issue.code === 'invalid_type' ? `must be a mapping of ${keys}` : undefined
})

/** `a2a.guardrails`. Whether each pattern is one is said by {@link patternFaults}. */
export const guardrailsSchema: z.ZodType<GuardrailSettings> = z.strictObject(
  { input: guardrail(GUARDRAILS.input), output: guardrail(GUARDRAILS.output) },
  mapping('input and output')
)

/** `a2a.rateLimit`, `http.anonymousLimit` and `http.wrongTokenLimit`, with their defaults. */
export const rateLimitSchema = ({ perMinute, burst }: RateLimitSetting): z.ZodType<RateLimitSetting> =>
  z.strictObject(
    { perMinute: count(perMinute, 1_000_000), burst: count(burst, 100_000) },
    mapping('perMinute and burst')
  )

/** Patterns that are none, or cost too much: each by its place below `a2a.guardrails`, and why. */
export async function patternFaults(
  settings: GuardrailSettings
): Promise<readonly { readonly path: readonly PropertyKey[]; readonly reason: string }[]> {
  const { input, output } = settings
  if (input.deny.length + output.deny.length === 0) return []
  // Loaded only where there are patterns: it costs more than all other settings together.
  const { RE2JS } = await import('re2js')
  const found = []
  for (const on of ['input', 'output'] as const) {
    const { maxLength, deny } = settings[on]
    let steps = 0
    for (const [place, pattern] of deny.entries()) {
      const path = [on, 'deny', place]
      try {
        steps += RE2JS.compile(pattern).programSize()
      } catch (error) {
        found.push({ path, reason: `is no pattern of RE2: ${messageOf(error).replace(/^error parsing regexp: /, '')}` })
      }
      if (steps * maxLength <= MAX_PATTERN_WORK) continue
      found.push({
        path,
        reason: `costs too much: up to here ${steps} steps for each of ${maxLength} characters; lower maxLength or shorten patterns`
      })
      break
    }
  }
  return found
}
