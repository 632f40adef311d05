import type { CapabilityDescriptor } from '../../../domain/card/card.js'

/** Marks the capability that serves resources and prompts of an MCP server. */
const SERVES = 'serves context'
const TAG = /^ctx:([A-Za-z0-9_-]{22})$/

/**
 * Methods of the capability, each with `params`: `list` gives the index; `read` (`uri`) the contents of a resource as
 * embedded resources; `prompt` (`name`, `arguments`) the messages of a prompt, their roles in `structuredContent`;
 * `complete` (as `completion/complete`) a completion; `watch` (`uris`) the revision of each resource, null where no
 * changes are reported.
 */
export const CONTEXT_METHODS = ['list', 'read', 'prompt', 'complete', 'watch'] as const

/** One of {@link CONTEXT_METHODS}. */
export type ContextMethod = (typeof CONTEXT_METHODS)[number]

/** Resources in one `watch`. */
export const MAX_WATCH_URIS = 64

/** Id of {@link contextCapability}. */
export function contextId(server: string): string {
  return `${server}.context`
}

/**
 * The capability of a server's agent that serves its resources and prompts to nodes: `git.context`. It reads, for the
 * policy. `hash`: of the index, so that nodes notice a change.
 */
export function contextCapability(server: string, hash: string): CapabilityDescriptor {
  return {
    id: contextId(server),
    name: 'Resources and prompts',
    description: 'Serves resources, prompts and completions to MCP clients of other nodes.',
    inputSchema: {
      type: 'object',
      properties: { method: { type: 'string', enum: [...CONTEXT_METHODS] }, params: { type: 'object' } },
      required: ['method']
    },
    outputSchema: {},
    idempotent: true,
    sideEffect: 'read',
    tags: [SERVES, `ctx:${hash}`]
  }
}

/** The hash of the index that a capability serves; null: it serves none. */
export function servedContext(agentId: string, { id, tags = [] }: CapabilityDescriptor): string | null {
  if (id !== contextId(agentId) || !tags.includes(SERVES)) return null
  return tags.map((tag) => TAG.exec(tag)?.[1]).find((hash) => hash !== undefined) ?? null
}
