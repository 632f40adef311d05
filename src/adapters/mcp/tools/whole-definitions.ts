import { Abort } from '../../../kit/abort.js'
import { BoundedMap } from '../../../kit/bounded.js'
import { type AbortSignalLike, type Clock, wait } from '../../../kit/clock.js'
import { shown } from '../../../kit/text.js'
import type { NodeApi } from '../../../ports/node-api.js'
import { definitionsId, MAX_DEFINITIONS, readDefinitions, type WholeDefinition } from '../imported/tool-definition.js'
import type { ToolDefinition } from '../server/tool.js'
import { callAgent } from './mesh-call.js'

/** Definitions in memory, of all nodes. */
const MAX_KEPT = 4096
/** How long a list waits for definitions of other nodes, in milliseconds. */
const PATIENCE_MS = 5000
/** An agent that let a list wait so long in vain is not asked by further lists for a while, both in milliseconds. */
const SLOW_MS = 1000
const PAUSE_MS = 60_000
/** Slow agents that are remembered for one caller. */
const MAX_SLOW = 1024
/** Characters of a fetched description. */
const MAX_DESCRIPTION = 4096

/** Fetched definitions by their hashes, shared by all callers: who sees a card may see what it stands for. */
export type KnownDefinitions = Map<string, WholeDefinition>

/** An empty store of definitions. The oldest goes first. */
export function knownDefinitions(): KnownDefinitions {
  return new BoundedMap(MAX_KEPT)
}

/** Slow agents, each with the end of its pause in monotonic milliseconds. */
export type SlowAgents = Map<string, number>

/** None yet. The oldest goes first. */
export function slowAgents(): SlowAgents {
  return new BoundedMap(MAX_SLOW)
}

/** Dependencies of {@link wholeDefinitions}. */
export interface WholeDefinitionsDeps {
  /** Acts as the caller who gets the definitions. */
  readonly api: NodeApi
  readonly clock: Clock
  readonly toJson: (value: unknown) => unknown
  readonly known: KnownDefinitions
  /** Of the same caller. */
  readonly slow: SlowAgents
}

/**
 * The definitions with their whole schemas and descriptions, fetched from their agents where a card had no room. One
 * that cannot be fetched takes any arguments and says so: an outline is never shown as a schema. A slow agent is asked
 * only for a definition that is wanted alone.
 */
export async function wholeDefinitions(
  deps: WholeDefinitionsDeps,
  definitions: readonly ToolDefinition[]
): Promise<readonly ToolDefinition[]> {
  const missing = new Map<string, Set<string>>()
  for (const { outlineOf: hash, source = '' } of definitions) {
    if (hash === undefined || deps.known.has(hash)) continue
    if (definitions.length > 1 && (deps.slow.get(source) ?? 0) > deps.clock.monotonic()) continue
    const ofAgent = missing.get(source)
    if (ofAgent === undefined) missing.set(source, new Set([hash]))
    else ofAgent.add(hash)
  }
  if (missing.size > 0) await fetched(deps, missing)
  return definitions.map((one) => (one.outlineOf === undefined ? one : whole(one, deps.known.get(one.outlineOf))))
}

/** Fetches all of them, for a bounded time. */
async function fetched(deps: WholeDefinitionsDeps, missing: ReadonlyMap<string, ReadonlySet<string>>): Promise<void> {
  const ended = new Abort()
  const { clock, known, slow } = deps
  const begun = clock.monotonic()
  const asked = [...missing].map(async ([agent, hashes]) => {
    await fromAgent(deps, { agent, hashes: [...hashes], signal: ended })
    const now = clock.monotonic()
    if (now - begun >= SLOW_MS && [...hashes].some((hash) => !known.has(hash))) slow.set(agent, now + PAUSE_MS)
  })
  await Promise.race([Promise.all(asked), wait(clock, PATIENCE_MS, ended)])
  ended.abort()
}

async function fromAgent(
  { api, toJson, known }: WholeDefinitionsDeps,
  {
    agent,
    hashes,
    signal
  }: { readonly agent: string; readonly hashes: readonly string[]; readonly signal: AbortSignalLike }
): Promise<void> {
  const capability = definitionsId(agent.slice(0, agent.lastIndexOf('@')))
  for (let at = 0; at < hashes.length; at += MAX_DEFINITIONS) {
    const some = hashes.slice(at, at + MAX_DEFINITIONS)
    const call = { agent, capability, input: { hashes: some }, timeoutMs: PATIENCE_MS }
    try {
      const context = { abortSignal: signal, progress: () => {} }
      const read = readDefinitions(await callAgent({ api, toJson }, call, context))
      for (const hash of some) {
        const one = read.get(hash)
        if (one !== undefined) known.set(hash, one)
      }
    } catch {
      // Its node is away, or refuses: the tools say that they could not be read.
      return
    }
  }
}

function whole(definition: ToolDefinition, found: WholeDefinition | undefined): ToolDefinition {
  const { outlineOf: _, ...rest } = definition
  if (found === undefined) {
    const note = 'Its input schema could not be fetched from its node; a2a_describe_tool tries again.'
    return { ...rest, description: `${definition.description} ${note}`, inputSchema: { type: 'object' } }
  }
  const purpose = shown(found.description, MAX_DESCRIPTION)
  const address = definition.description.slice((definition.purpose ?? '').length)
  return {
    ...rest,
    description: `${purpose}${address}`,
    purpose,
    inputSchema: { ...found.inputSchema, type: 'object' }
  }
}
