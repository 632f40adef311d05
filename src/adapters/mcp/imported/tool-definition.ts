import { createHash } from 'node:crypto'
import type { CapabilityDescriptor } from '../../../domain/card/card.js'
import { canonicalJson, isRecord } from '../../../kit/json.js'

/** The definition of a tool, whole, as its server gives it. */
export interface WholeDefinition {
  readonly name: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** null: the server promises none. */
  readonly outputSchema: Readonly<Record<string, unknown>> | null
}

/** Definitions in one answer, at most. */
export const MAX_DEFINITIONS = 8

/** Marks the capability that gives definitions by their hashes. */
const GIVES = 'gives definitions'
const TAG = /^def:([A-Za-z0-9_-]{22})$/

/** 128 bits of the sha256 of a definition's canonical JSON, as base64url. */
export function definitionHash({ name, description, inputSchema, outputSchema }: WholeDefinition): string {
  const whole = { name, description, inputSchema, ...(outputSchema === null ? {} : { outputSchema }) }
  return createHash('sha256').update(canonicalJson(whole)).digest('base64url').slice(0, 22)
}

/** The tag of a capability that stands for a definition for which its card has no room. */
export function definitionTag(hash: string): string {
  return `def:${hash}`
}

/** The hash of the whole definition of a capability; null: the card has it. */
export function hashOf({ tags = [] }: Pick<CapabilityDescriptor, 'tags'>): string | null {
  for (const tag of tags) {
    const hash = TAG.exec(tag)?.[1]
    if (hash !== undefined) return hash
  }
  return null
}

/** The capability of a server's agent that gives definitions: `git.definitions`. Nodes call it, not models. */
export function definitionsCapability(server: string): CapabilityDescriptor {
  return {
    id: definitionsId(server),
    name: 'Definitions of tools',
    description: 'Gives whole definitions of tools by the hashes in their tags.',
    inputSchema: {
      type: 'object',
      properties: { hashes: { type: 'array', items: { type: 'string' }, maxItems: MAX_DEFINITIONS } },
      required: ['hashes']
    },
    outputSchema: {},
    idempotent: true,
    sideEffect: 'none',
    tags: [GIVES]
  }
}

/** Id of {@link definitionsCapability}. */
export function definitionsId(server: string): string {
  return `${server}.definitions`
}

/** Does the capability only give definitions? */
export function givesDefinitions(agentId: string, { id, tags = [] }: CapabilityDescriptor): boolean {
  return id === definitionsId(agentId) && tags.includes(GIVES)
}

/** The answer of {@link definitionsCapability}: those known, without the others. */
export function givenDefinitions(
  input: unknown,
  known: ReadonlyMap<string, WholeDefinition>
): { readonly definitions: readonly WholeDefinition[] } {
  const hashes: readonly unknown[] = isRecord(input) && Array.isArray(input['hashes']) ? input['hashes'] : []
  const definitions = hashes.slice(0, MAX_DEFINITIONS).flatMap((hash) => {
    const found = known.get(String(hash))
    if (found === undefined) return []
    const { name, description, inputSchema, outputSchema } = found
    return [{ name, description, inputSchema, outputSchema }]
  })
  return { definitions }
}

/** The definitions in an answer of a peer, by their hashes; nothing that is none. */
export function readDefinitions(answer: unknown): ReadonlyMap<string, WholeDefinition> {
  const given: readonly unknown[] =
    isRecord(answer) && Array.isArray(answer['definitions']) ? answer['definitions'] : []
  const read = new Map<string, WholeDefinition>()
  for (const one of given.slice(0, MAX_DEFINITIONS)) {
    if (!isRecord(one)) continue
    const { name, description, inputSchema, outputSchema = null } = one
    if (typeof name !== 'string' || typeof description !== 'string' || !isRecord(inputSchema)) continue
    if (outputSchema !== null && !isRecord(outputSchema)) continue
    const whole = { name, description, inputSchema, outputSchema }
    read.set(definitionHash(whole), whole)
  }
  return read
}
