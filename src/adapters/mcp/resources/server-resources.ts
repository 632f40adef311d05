import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server'
import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { addressed, type ContextItem } from '../imported/context-index.js'
import { type Complete, completionIn } from './completing.js'
import { ListChanges } from './list-changes.js'
import type { MeshContext, ServerAgent } from './mesh-context.js'
import type { SeenLinks } from './seen-links.js'
import { mayFit, originOf, publishedTemplate, publishedUri, type ResourceOrigin } from './resource-uri.js'
import type { ResourceSource } from './resource-source.js'
import { WatchedResources } from './watched-resources.js'

/** Resources and templates of one list, at most. */
const MAX_RESOURCES = 20_000
/** The server's own URI of a resource, in `_meta`. */
const ORIGINAL_URI = 'a2a-node/uri'
/** Start of the URIs of this node's resources. */
const OWN = 'a2a://'
const INSTRUCTIONS = 'a2a://instructions/'
const NEVER = new AbortController().signal

/** Dependencies of {@link ServerResources}. */
export interface ServerResourcesDeps {
  readonly context: MeshContext
  /** Links in tool results of the same caller. */
  readonly links: Pick<SeenLinks, 'addressOf'>
  readonly clock: Clock
}

/** Resources of the MCP servers that nodes import, as `a2a://resources/<id@node>/<uri>`; a clear bare URI works too. */
export class ServerResources implements ResourceSource {
  readonly #context: MeshContext
  readonly #links: Pick<SeenLinks, 'addressOf'>
  readonly #watched: WatchedResources
  readonly #changes: ListChanges

  constructor({ context, links, clock }: ServerResourcesDeps) {
    this.#context = context
    this.#links = links
    this.#watched = new WatchedResources({ context, clock, namesOf: (uris) => this.#namesOf(uris) })
    this.#changes = new ListChanges(context, async () => [await this.list(), await this.templates()])
  }

  async list(): Promise<readonly Resource[]> {
    const servers = await this.#context.servers()
    const all = servers.flatMap(({ agent: { address }, index }) => [
      ...index.resources.map((item) => {
        const uri = textOf(item, 'uri')
        return described(item, { uri: publishedUri({ address, uri }) }, { address, uri }) as Resource
      }),
      ...(index.instructions === ''
        ? []
        : [{ uri: instructionsUri(address), name: `instructions of ${shown(address)}`, mimeType: 'text/plain' }])
    ])
    return all.slice(0, MAX_RESOURCES)
  }

  async templates(): Promise<readonly ResourceTemplateType[]> {
    const servers = await this.#context.servers()
    const all = servers.flatMap(({ agent: { address }, index }) =>
      index.templates.flatMap((item) => {
        const origin = { address, uri: textOf(item, 'uriTemplate') }
        const uriTemplate = publishedTemplate(origin)
        return uriTemplate === null ? [] : [described(item, { uriTemplate }, origin) as ResourceTemplateType]
      })
    )
    return all.slice(0, MAX_RESOURCES)
  }

  readonly complete: Complete = async (pattern, { argument, value, given }) => {
    const origin = await this.#templateOf(pattern)
    if (origin === null) return undefined
    const params = {
      ref: { type: 'ref/resource', uri: origin.uri },
      argument: { name: argument, value },
      context: { arguments: given }
    }
    const { address } = origin
    return completionIn(await this.#context.value({ address, method: 'complete', params, signal: NEVER }))
  }

  async read(uri: string, signal: AbortSignal): Promise<ReadResourceResult['contents'] | undefined> {
    const instructions = await this.#instructions(uri)
    if (instructions !== undefined) return [{ uri, mimeType: 'text/plain', text: instructions }]
    const origin = await this.#originOf(uri)
    if (origin === null) return undefined
    const { address } = origin
    const { content } = await this.#context.content({ address, method: 'read', params: { uri: origin.uri }, signal })
    const isPublished = originOf(uri) !== null
    return content.map((block) => {
      const resource: unknown = block.type === 'resource' ? block.resource : null
      if (!isRecord(resource)) throw new NodeError('INVALID_OUTPUT', `${address} gave no contents of a resource`)
      const own = textOf(resource, 'uri')
      const named = own === origin.uri ? uri : isPublished ? publishedUri({ address, uri: own.toWellFormed() }) : own
      return { ...resource, uri: named } as ReadResourceResult['contents'][number]
    })
  }

  async nameOf(uri: string): Promise<string | undefined> {
    if ((await this.#instructions(uri)) !== undefined) return uri
    const origin = await this.#originOf(uri)
    if (origin === null) return undefined
    const name = publishedUri(origin)
    if (await this.#watched.begin(name)) return name
    throw new NodeError('INVALID_INPUT', `${shown(origin.address)} does not report changes of ${shown(origin.uri)}`)
  }

  onChange(changed: (uri: string | null) => void, watched?: () => Iterable<string>): () => void {
    const ends = [
      this.#changes.on(() => changed(null)),
      watched === undefined ? () => {} : this.#watched.on({ watched, changed })
    ]
    return () => {
      for (const end of ends) end()
    }
  }

  async #namesOf(uris: readonly string[]): Promise<readonly string[]> {
    const servers = await this.#context.servers()
    return uris.flatMap((uri) => {
      try {
        const origin = this.#originIn(servers, uri)
        return origin === null ? [] : [publishedUri(origin)]
      } catch {
        // Several servers have it: it means none.
        return []
      }
    })
  }

  async #instructions(uri: string): Promise<string | undefined> {
    if (!uri.startsWith(INSTRUCTIONS)) return undefined
    const servers = await this.#context.servers()
    return servers.find(({ agent, index }) => instructionsUri(agent.address) === uri && index.instructions !== '')
      ?.index.instructions
  }

  async #originOf(uri: string): Promise<ResourceOrigin | null> {
    const published = originOf(uri)
    if (uri.startsWith(OWN) && published === null) return null
    // No look for a known server: it would wait for silent ones.
    const isKnown = published !== null && this.#context.isServer(published.address)
    return isKnown ? published : this.#originIn(await this.#context.servers(), uri)
  }

  /**
   * Of a published URI, or of a bare one that only one server lists; of this node's servers first. Agents that serve no
   * resources are not called, whatever a URI says.
   */
  #originIn(servers: readonly ServerAgent[], uri: string): ResourceOrigin | null {
    const published = originOf(uri)
    if (published !== null) return this.#context.isServer(published.address) ? published : null
    if (uri.startsWith(OWN) || !uri.isWellFormed()) return null
    const lists = ({ index }: ServerAgent): boolean => index.resources.some((item) => item['uri'] === uri)
    const fits = ({ index }: ServerAgent): boolean =>
      index.templates.some((item) => mayFit(textOf(item, 'uriTemplate'), uri))
    const listed = onlyOne(servers.filter(lists), uri) ?? onlyOne(servers.filter(fits), uri)
    const address = this.#links.addressOf(uri)
    if (listed !== null || address === undefined) return listed
    return this.#context.isServer(address) ? { address, uri } : null
  }

  async #templateOf(pattern: string): Promise<ResourceOrigin | null> {
    const servers = await this.#context.servers()
    const published = originOf(pattern)
    if (published !== null) return this.#context.isServer(published.address) ? published : null
    const has = ({ index }: ServerAgent): boolean => index.templates.some((item) => item['uriTemplate'] === pattern)
    return onlyOne(servers.filter(has), pattern)
  }
}

/** null when there is none. @throws NodeError INVALID_INPUT when several servers are meant */
function onlyOne(servers: readonly ServerAgent[], uri: string): ResourceOrigin | null {
  const here = servers.filter(({ agent }) => agent.origin === 'local')
  const [only, other] = here.length === 0 ? servers : here
  if (only === undefined) return null
  if (other === undefined) return { address: only.agent.address, uri }
  const uris = servers.map(({ agent: { address } }) => publishedUri({ address, uri }))
  throw new NodeError('INVALID_INPUT', `several servers have ${shown(uri)}: ${uris.slice(0, 8).join(', ')}`)
}

/** An item for clients: with its address, and the server's own URI. */
function described(item: ContextItem, named: object, { address, uri }: ResourceOrigin): object {
  const { _meta } = item
  const meta = { ...(isRecord(_meta) ? _meta : {}), [ORIGINAL_URI]: uri }
  return { ...item, ...named, description: addressed(item, address), _meta: meta }
}

function instructionsUri(address: string): string {
  return INSTRUCTIONS + encodeURIComponent(address)
}

function textOf(item: ContextItem, member: string): string {
  const value = item[member]
  return typeof value === 'string' ? value : ''
}
