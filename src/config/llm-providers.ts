import { z } from 'zod'
import { isRecord } from '../kit/json.js'
import { parseDuration } from '../kit/units.js'
import { headers, headerValue, hideValues, httpUrl, shownSecret, shownUrl, text, unit } from './entry-values.js'

/** LLM providers of one config. */
export const MAX_LLM_PROVIDERS = 32

/** Longest time that a server may say nothing: beyond it the HTTP client of Node gives up by itself. */
const MAX_STALL_MS = 290_000

/** One server that speaks the protocol of OpenAI's chat completions, as the config file names it. */
export interface LlmProviderSetting {
  /** Base address, below which is `/chat/completions`. */
  readonly url: string
  /** Model of agents that name none; null: they have to. */
  readonly model: string | null
  /** Sent as a bearer token; `env:NAME` takes a variable of the node; null: none is sent. */
  readonly apiKey: string | null
  /** Headers of each request; `env:NAME` takes a variable of the node. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds that the server may say nothing, before its answer and within it. */
  readonly stallTimeoutMs: number
}

const entry = z
  .strictObject({
    url: httpUrl,
    model: text(256).nullable().default(null),
    apiKey: headerValue.nullable().default(null),
    headers,
    stallTimeout: unit('must be a duration such as 10s or 2m, at most 290s', parseDuration, [1, MAX_STALL_MS]).default(
      120_000
    )
  })
  .transform(({ stallTimeout, ...rest }): LlmProviderSetting => ({ ...rest, stallTimeoutMs: stallTimeout }))

/** The map of providers by name. */
export const llmProvidersSchema: z.ZodType<Readonly<Record<string, LlmProviderSetting>>> = z
  .record(
    z
      .string()
      .max(32, 'must be a name of at most 32 characters')
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a name of a-z, 0-9 and single dashes between them'),
    entry,
    'must be a mapping of provider names'
  )
  .refine(
    (providers) => Object.keys(providers).length <= MAX_LLM_PROVIDERS,
    `has more than ${MAX_LLM_PROVIDERS} providers`
  )

/** The providers for display: keys, values of headers and the query of a URL are hidden. */
export function shownProviders(value: unknown): unknown {
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value as Record<string, LlmProviderSetting>).map(([name, one]) => [
      name,
      {
        ...one,
        url: shownUrl(one.url),
        apiKey: one.apiKey === null ? null : shownSecret(one.apiKey),
        headers: hideValues(one.headers)
      }
    ])
  )
}
