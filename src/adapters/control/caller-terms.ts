import { z } from 'zod'
import { parseJson } from '../../kit/json.js'
import { sandboxIdSchema } from '../../domain/card/schema.js'
import { weakest } from '../../domain/routing/tier.js'
import type { Principal } from '../../ports/node-api.js'
import { CALLER_GLOB, CALLER_GLOBS_MAX, CALLER_NAME, TOOL_GLOB } from './terms.js'

const TERMS = z.strictObject({
  name: z.string().regex(CALLER_NAME),
  tier: z.literal([0, 1, 2, 3]),
  sandboxId: sandboxIdSchema.nullable(),
  agents: z.array(z.string().regex(CALLER_GLOB)).min(1).max(CALLER_GLOBS_MAX).readonly().nullable(),
  tools: z.array(z.string().regex(TOOL_GLOB)).min(1).max(CALLER_GLOBS_MAX).readonly().exactOptional()
})

/**
 * Rights that a program asks for when it opens a stream under a name of its own. `agents`: globs of agent ids; null:
 * all agents. `tools`: globs of the only tools in its MCP list; absent: all. Earlier builds refuse terms with them.
 */
export type CallerTerms = Readonly<z.infer<typeof TERMS>>

const LIMITS = { maxDepth: 3, maxKeys: 150, maxString: 256 } as const

/**
 * The caller of a stream: the operator without terms; else a program that reads and sends with at most these rights.
 * Null for wrong terms.
 */
export function callerOf(operator: Principal, text: string | null): Principal | null {
  if (text === null) return operator
  const parsed = parseJson(text, LIMITS)
  const { data } = TERMS.safeParse(parsed.ok ? parsed.value : null)
  if (data === undefined) return null
  const { name, tier, sandboxId, agents, tools } = data
  return {
    kind: 'mcp',
    // A prefix, so that the audit log never shows it as the operator.
    name: `program ${name}`,
    tier: weakest(operator.tier, tier),
    sandboxId,
    scopes: ['read', 'send'],
    ...(agents === null ? {} : { agents }),
    ...(tools === undefined ? {} : { tools })
  }
}
