import { z } from 'zod'
import { isRecord } from '../kit/json.js'
import { agentUrl, httpUrl, shownUrl, text } from './entry-values.js'
import { bounds, pin, power, serverName } from './mcp-servers.js'
import type { Setting } from './settings.js'

/** Remote A2A agents of one config. */
export const MAX_A2A_AGENTS = 32

/** Where the secret of an agent comes from, and where it goes. */
export interface A2ASecretSetting {
  /** Header that carries it. */
  readonly header: string
  /** `env:NAME`: the variable of the node that holds it. */
  readonly value: string
  /** It is a bearer token. */
  readonly isBearer: boolean
  /** Origins that get it beside that of the card. */
  readonly origins: readonly string[]
}

/** One A2A agent that this node offers as an agent of the mesh, as the config file names it. */
export interface A2AAgentSetting {
  /** URL of its card; an origin alone stands for its well-known path. */
  readonly card: string
  /** URL at which the agent is called in the place of that on its card; null: none. */
  readonly url: string | null
  readonly auth: A2ASecretSetting | null
  /** JWK by which its card must be signed; null: it need not be. */
  readonly key: Readonly<Record<string, unknown>> | null
  readonly pin: string | null
  /** Globs of the skills that are offered (`*` any text); null: all. */
  readonly skills: readonly string[] | null
  readonly idempotent: readonly string[]
  readonly tier: 'L0' | 'L1' | 'L2' | 'L3' | null
  readonly sandbox: string | null
  readonly sideEffect: 'none' | 'read' | 'write' | 'exec'
  readonly timeoutMs: number
  readonly concurrency: number
  readonly maxOutputBytes: number
  /** Does the agent get the justification of a call? */
  readonly passJustification: boolean
}

const REFERENCE = 'must name a variable of the node that holds the secret: env:NAME'
const reference = z.string(REFERENCE).regex(/^env:[A-Za-z_][A-Za-z0-9_]{0,127}$/, REFERENCE)
const header = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'is no name of a header')
const origin = z
  .string()
  .max(512)
  .refine(
    (value) => URL.canParse(value) && new URL(value).origin === value,
    'must be an origin such as https://api.example.com'
  )
const origins = z.array(origin).max(8).default([])

const auth = z
  .union(
    [z.strictObject({ bearer: reference, origins }), z.strictObject({ header, value: reference, origins })],
    'needs bearer: env:NAME, or header and value: env:NAME'
  )
  .transform(
    (one): A2ASecretSetting =>
      'bearer' in one
        ? { header: 'authorization', value: one.bearer, isBearer: true, origins: one.origins }
        : { ...one, isBearer: false }
  )

const key = z
  .record(z.string().max(32), z.unknown())
  .refine((one) => typeof one['kty'] === 'string' && one['d'] === undefined, {
    error: 'must be the public key of the signer of the card, as a JWK'
  })

const entry = z
  .strictObject({
    card: agentUrl,
    url: httpUrl.nullable().default(null),
    auth: auth.nullable().default(null),
    key: key.nullable().default(null),
    skills: z.array(text(256)).min(1, 'must name a skill').max(512).nullable().default(null),
    idempotent: z.array(text(256)).max(512).default([]),
    ...power,
    ...bounds,
    passJustification: z.boolean().default(false),
    pin
  })
  .transform(
    ({ timeout, maxOutput, ...rest }): A2AAgentSetting => ({ ...rest, timeoutMs: timeout, maxOutputBytes: maxOutput })
  )

/** The map of remote agents by name. */
export const a2aAgentsSchema: z.ZodType<Readonly<Record<string, A2AAgentSetting>>> = z
  .record(serverName, entry, 'must be a mapping of agent names')
  .refine((agents) => Object.keys(agents).length <= MAX_A2A_AGENTS, `has more than ${MAX_A2A_AGENTS} agents`)

/** The agents for display: the query of a card's URL may be a secret; names of variables are none. */
export function shownAgents(value: unknown): unknown {
  if (!isRecord(value)) return value
  const agents = value as Record<string, A2AAgentSetting>
  return Object.fromEntries(
    Object.entries(agents).map(([name, one]) => [
      name,
      { ...one, card: shownUrl(one.card), url: one.url === null ? null : shownUrl(one.url) }
    ])
  )
}

/** The setting `a2a.agents`. */
export const A2A_AGENTS: Setting<Readonly<Record<string, A2AAgentSetting>>> = {
  schema: a2aAgentsSchema,
  fallback: {},
  form: 'servers',
  unit: null,
  allowed: `a mapping of at most ${MAX_A2A_AGENTS} names, each with the URL of a card; in the config file only`,
  about: 'A2A agents elsewhere that this node offers, each as an agent of that name.',
  show: shownAgents
}
