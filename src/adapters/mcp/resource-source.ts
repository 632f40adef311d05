import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server'
import type { Complete } from './completing.js'

/** Where resources come from: cards, documents, results of swarms, the audit log. */
export interface ResourceSource {
  /** In the order to show. */
  list(): readonly Resource[] | Promise<readonly Resource[]>
  /** Patterns of the URIs that are too many to list. */
  templates?(): readonly ResourceTemplateType[] | Promise<readonly ResourceTemplateType[]>
  /** Values for the variables of a pattern. */
  readonly complete?: Complete
  /** undefined when there is none; what it throws is told to the client. */
  read(uri: string, signal: AbortSignal): Promise<ReadResourceResult['contents'] | undefined>
  /** Would `read` give something? Without it `read` is asked. */
  has?(uri: string, signal: AbortSignal): boolean | Promise<boolean>
  /** Calls back with null when `list` gives something else, with a URI when the content of that one changed; returns what ends it. */
  onChange?(changed: (uri: string | null) => void): () => void
}

/** Would a source give something for a URI? What it throws is told to the client. */
export async function isThere(source: ResourceSource, uri: string, signal: AbortSignal): Promise<boolean> {
  return source.has === undefined ? (await source.read(uri, signal)) !== undefined : await source.has(uri, signal)
}
