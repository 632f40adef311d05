import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server'
import { NodeError } from '../../../kit/errors.js'
import type { Unsubscribe } from '../../../kit/events.js'
import { DOCUMENT_NAME } from '../../../kit/names/rule.js'
import { safeName } from '../../../kit/names/safe-name.js'
import { shown } from '../../../kit/text.js'
import type { DocumentReading, DocumentType } from '../../../ports/document-api.js'
import type { EventInfo } from '../../../ports/node-api.js'
import type { Complete } from './completing.js'
import { type FollowDeps, followWatch, SharedChanges } from './followed-watch.js'
import type { ResourceSource } from './resource-source.js'

/** Dependencies of {@link MeshResources}. */
export interface MeshResourcesDeps extends FollowDeps {
  /** Values of agents and documents as JSON: bytes become base64 text. */
  readonly toJson: (value: unknown) => unknown
}

const AGENTS = 'a2a://agents/'
const DOCUMENTS = 'a2a://documents/'
const SWARMS = 'a2a://swarms/'
const KINDS = [
  ['agent', AGENTS],
  ['document', DOCUMENTS],
  ['swarm', SWARMS]
] as const
const JSON_TYPE = 'application/json'
const PARTS: readonly DocumentType[] = ['text', 'map', 'list']

/** Cards of agents, shared documents and results of swarms as resources under `a2a://`. */
export class MeshResources implements ResourceSource {
  readonly #deps: MeshResourcesDeps
  readonly #changes: SharedChanges<string | null>

  constructor(deps: MeshResourcesDeps) {
    this.#deps = deps
    this.#changes = new SharedChanges((tell) => followMesh(deps, tell))
  }

  onChange(changed: (uri: string | null) => void): () => void {
    return this.#changes.on(changed)
  }

  async list(): Promise<readonly Resource[]> {
    const { api } = this.#deps
    const [{ agents }, { documents }, { swarms }] = await Promise.all([
      api.call('agents.list', {}),
      api.call('documents.list', {}),
      api.call('swarm.list', {})
    ])
    return [
      ...agents.map((one) =>
        resource(AGENTS, { key: one.address, name: `card of ${shown(one.address)}`, mimeType: JSON_TYPE })
      ),
      ...documents.map((one) =>
        resource(DOCUMENTS, {
          key: one.name,
          name: `document ${safeName(one.name, DOCUMENT_NAME)}`,
          mimeType: 'text/plain'
        })
      ),
      ...swarms.map((one) =>
        resource(SWARMS, { key: one.id, name: `results of swarm ${one.id}: ${shown(one.goal)}`, mimeType: JSON_TYPE })
      )
    ]
  }

  templates(): readonly ResourceTemplateType[] {
    return [
      { uriTemplate: `${AGENTS}{address}`, name: 'card of an agent', mimeType: JSON_TYPE },
      { uriTemplate: `${DOCUMENTS}{name}`, name: 'shared document' },
      { uriTemplate: `${SWARMS}{id}`, name: 'results of a swarm', mimeType: JSON_TYPE }
    ]
  }

  /** Of every pattern the one variable: addresses of agents, names of documents, ids of swarms. */
  readonly complete: Complete = async (pattern) => {
    const { api } = this.#deps
    if (pattern === `${AGENTS}{address}`) return (await api.call('agents.list', {})).agents.map((one) => one.address)
    if (pattern === `${DOCUMENTS}{name}`) return (await api.call('documents.list', {})).documents.map((one) => one.name)
    if (pattern === `${SWARMS}{id}`) return (await api.call('swarm.list', {})).swarms.map((one) => one.id)
    return undefined
  }

  /** An agent may be called by less than its address, and a URI may be encoded in many ways. */
  async nameOf(uri: string): Promise<string | undefined> {
    const { api } = this.#deps
    return await this.#of(uri, {
      agent: async (agent) => uriOf(AGENTS, (await api.call('agents.show', { agent })).address),
      document: async (document) => uriOf(DOCUMENTS, (await api.call('documents.show', { document })).name),
      swarm: async (id) => uriOf(SWARMS, (await api.call('swarm.show', { id })).id)
    })
  }

  async read(uri: string): Promise<ReadResourceResult['contents'] | undefined> {
    const { api } = this.#deps
    return await this.#of(uri, {
      agent: async (agent) => this.#json(uri, await api.call('agents.show', { agent })),
      document: async (document) => await this.#document(uri, document),
      swarm: async (id) => this.#json(uri, await api.call('swarm.results', { id }))
    })
  }

  /** Reads a URI by the reader of its kind; undefined when there is no such resource. */
  async #of<T>(
    uri: string,
    read: { readonly [kind in 'agent' | 'document' | 'swarm']: (key: string) => Promise<T> }
  ): Promise<T | undefined> {
    for (const [kind, prefix] of KINDS) {
      const key = keyOf(uri, prefix)
      if (key !== null) return await there(() => read[kind](key))
    }
    return undefined
  }

  /**
   * Text alone stays text; a document with a map or list becomes JSON of its parts. Gaps are listed in a content of
   * their own.
   */
  async #document(uri: string, document: string): Promise<ReadResourceResult['contents']> {
    const { api } = this.#deps
    const values: Partial<Record<DocumentType, unknown>> = {}
    let gaps: NonNullable<DocumentReading['skipped']> = []
    for (const type of PARTS) {
      const { value, skipped = [] } = await api.call('documents.read', { document, type })
      if (isFilled(value)) values[type] = value
      gaps = skipped
    }
    const textOf = (text: string): ReadResourceResult['contents'] => [{ uri, mimeType: 'text/plain', text }]
    const isText = Object.keys(values).every((type) => type === 'text')
    const whole = isText ? textOf(typeof values.text === 'string' ? values.text : '') : this.#json(uri, values)
    const notes = gaps.map(
      ({ node, reason }) => `not all that ${shown(node.name, 64)} wrote is in this document: ${shown(reason)}`
    )
    return notes.length === 0 ? whole : [...whole, ...textOf(notes.join('\n'))]
  }

  #json(uri: string, value: unknown): ReadResourceResult['contents'] {
    return [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(this.#deps.toJson(value), null, 2) }]
  }
}

/** Reports changes of cards, documents and swarms: null when one came or went, a URI when that one changed. */
function followMesh(deps: FollowDeps, tell: (uri: string | null) => void): Unsubscribe {
  const [agents, documents] = [new Versions(AGENTS, tell), new Versions(DOCUMENTS, tell)]
  const from = deps.clock.now()
  const ends = [
    followWatch(deps, { name: 'agents.list', params: {} }, (list) =>
      agents.are(
        new Map(list.agents.map(({ address, revision, status }) => [address, `${revision} ${status === 'offline'}`]))
      )
    ),
    // Each write makes a document longer, and each removal from its streams changes these numbers.
    followWatch(deps, { name: 'documents.list', params: {} }, (list) =>
      documents.are(new Map(list.documents.map(({ name, bytes, blocks }) => [name, `${bytes} ${blocks}`])))
    ),
    followWatch(deps, { name: 'node.events', params: { follow: true } }, ({ at, type, data }: EventInfo) => {
      // The recent ones come first: they are in the list already.
      if (type !== 'swarm' || Date.parse(at) < from) return
      tell(null)
      if (typeof data['swarm'] === 'string') tell(uriOf(SWARMS, data['swarm']))
    })
  ]
  return () => {
    for (const end of ends) end()
  }
}

/** The versions of the last look, to find changes. */
class Versions {
  readonly #prefix: string
  readonly #tell: (uri: string | null) => void
  #last: ReadonlyMap<string, string> | null = null

  constructor(prefix: string, tell: (uri: string | null) => void) {
    this.#prefix = prefix
    this.#tell = tell
  }

  are(now: ReadonlyMap<string, string>): void {
    const last = this.#last
    this.#last = now
    if (last === null) return
    if (last.size !== now.size || [...now.keys()].some((key) => !last.has(key))) this.#tell(null)
    for (const [key, version] of now) {
      const before = last.get(key)
      if (before !== undefined && before !== version) this.#tell(uriOf(this.#prefix, key))
    }
  }
}

interface ResourceFacts {
  readonly key: string
  readonly name: string
  readonly mimeType: string
}

function resource(prefix: string, { key, name, mimeType }: ResourceFacts): Resource {
  return { uri: uriOf(prefix, key), name, mimeType }
}

function uriOf(prefix: string, key: string): string {
  return prefix + encodeURIComponent(key)
}

/** The decoded text behind the prefix; null for another prefix, and for a text that no resource can have as name. */
function keyOf(uri: string, prefix: string): string | null {
  if (!uri.startsWith(prefix)) return null
  try {
    const key = decodeURIComponent(uri.slice(prefix.length))
    return key.length === 0 || key.length > 256 ? null : key
  } catch {
    return null
  }
}

/** undefined when the resource does not exist, or is hidden from this caller. */
async function there<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof NodeError && error.code.endsWith('_NOT_FOUND')) return undefined
    throw error
  }
}

function isFilled(value: unknown): boolean {
  if (typeof value === 'string') return value !== ''
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
