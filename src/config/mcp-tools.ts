import { z } from 'zod'

const FALLBACK: Readonly<Record<string, number>> & { readonly default: number } = { default: 10_000 }

/** Most clients with a limit of their own. */
const MAX_CLIENTS = 64

const tokens = z.int().min(0).max(100_000_000)

/** A number for all clients, or a mapping of names of clients. */
const schema: z.ZodType<typeof FALLBACK> = z
  .union([
    tokens.transform((all) => ({ default: all })),
    z.record(z.string().min(1).max(256), tokens).refine((all) => Object.keys(all).length <= MAX_CLIENTS)
  ])
  .transform((given) => ({ ...FALLBACK, ...given }))

/** The setting `mcp.maxResultTokens`. */
export const RESULT_TOKENS = {
  schema,
  fallback: FALLBACK,
  form: 'mapping',
  unit: null,
  allowed:
    'a whole number up to 100000000 (0: no limit), or a mapping of MCP clients and default to numbers; in the config file only',
  about: 'Tokens of text in a tool result; a larger text becomes a link that the client reads in pages.'
} as const

/** Most patterns of favorites. */
const MAX_FAVORITES = 32

/** The setting `mcp.favorites`. */
export const FAVORITES = {
  schema: z.array(z.string().min(1).max(256)).max(MAX_FAVORITES),
  fallback: [] as readonly string[],
  form: 'list',
  unit: null,
  allowed: `a list of names of tools, * for any text, at most ${MAX_FAVORITES}`,
  about: 'Tools of the mesh that a list of tools to find and call others has, too.'
} as const
