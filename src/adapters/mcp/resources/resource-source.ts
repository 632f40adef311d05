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
  /** undefined when there is none; an error goes to the client. */
  read(uri: string, signal: AbortSignal): Promise<ReadResourceResult['contents'] | undefined>
  /**
   * The URI by which `onChange` names the resource of `uri`; undefined when there is none. Without this method `read`
   * is asked.
   */
  nameOf?(uri: string, signal: AbortSignal): string | undefined | Promise<string | undefined>
  /**
   * Calls back with null when `list` changes, with a URI when its content changes; returns the function that ends it.
   * `watched`: URIs that the client follows now, for sources that must ask for changes.
   */
  onChange?(changed: (uri: string | null) => void, watched?: () => Iterable<string>): () => void
}

/** The URI by which a source names changes of a resource; undefined when there is none. An error goes to the client. */
export async function nameOf(source: ResourceSource, uri: string, signal: AbortSignal): Promise<string | undefined> {
  if (source.nameOf !== undefined) return await source.nameOf(uri, signal)
  return (await source.read(uri, signal)) === undefined ? undefined : uri
}
