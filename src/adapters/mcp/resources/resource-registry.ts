import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server'
import { NodeError } from '../../../kit/errors.js'
import { Emitter } from '../../../kit/events.js'
import { joinComplete } from './completing.js'
import { nameOf, type ResourceSource } from './resource-source.js'

/** A resource with its place. */
export interface RegisteredResource {
  readonly uri: string
  readonly name: string
  readonly mimeType: string
  readonly description?: string
}

/** Makes the content of a resource, each time that it is read: text, or bytes. */
export type ResourceLoader = (signal: AbortSignal) => Promise<string | Uint8Array>

/** Resources by their URI (spec a2a-mcp-mesh, MCP resources). */
export class ResourceRegistry implements ResourceSource {
  readonly #resources = new Map<string, { readonly resource: RegisteredResource; readonly load: ResourceLoader }>()
  readonly #changes = new Emitter<string | null>(() => {})

  /** Adds a resource. @throws NodeError CONFLICT when its URI is taken */
  register(resource: RegisteredResource, load: ResourceLoader): void {
    if (this.#resources.has(resource.uri))
      throw new NodeError('CONFLICT', `a resource ${resource.uri} is registered already`)
    this.#resources.set(resource.uri, { resource: { ...resource }, load })
    this.#changes.emit(null)
  }

  /** Removes a resource; false when there is none. */
  unregister(uri: string): boolean {
    const wasThere = this.#resources.delete(uri)
    if (wasThere) this.#changes.emit(null)
    return wasThere
  }

  list(): readonly Resource[] {
    return [...this.#resources.values()].map(({ resource }) => ({ ...resource }))
  }

  nameOf(uri: string): string | undefined {
    return this.#resources.has(uri) ? uri : undefined
  }

  async read(uri: string, signal: AbortSignal): Promise<ReadResourceResult['contents'] | undefined> {
    const found = this.#resources.get(uri)
    if (found === undefined) return undefined
    const content = await found.load(signal)
    const { mimeType } = found.resource
    return [
      typeof content === 'string'
        ? { uri, mimeType, text: content }
        : { uri, mimeType, blob: Buffer.from(content).toString('base64') }
    ]
  }

  onChange(changed: (uri: string | null) => void): () => void {
    return this.#changes.on(changed)
  }
}

/** Several sources as one; of two resources with the same URI the earlier source's counts. */
export function joinResources(sources: readonly ResourceSource[]): ResourceSource {
  return {
    list: async () => {
      const all: Resource[] = []
      for (const source of sources) all.push(...(await source.list()))
      return all
    },
    templates: async () => {
      const all: ResourceTemplateType[] = []
      for (const source of sources) all.push(...((await source.templates?.()) ?? []))
      return all
    },
    read: async (uri, signal) => {
      for (const source of sources) {
        const contents = await source.read(uri, signal)
        if (contents !== undefined) return contents
      }
      return undefined
    },
    ...joinComplete(sources),
    nameOf: async (uri, signal) => {
      for (const source of sources) {
        const name = await nameOf(source, uri, signal)
        if (name !== undefined) return name
      }
      return undefined
    },
    onChange: (changed, watched) => {
      const ends = sources.map((source) => source.onChange?.(changed, watched))
      return () => {
        for (const end of ends) end?.()
      }
    }
  }
}
