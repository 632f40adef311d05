import { joinResources, ResourceRegistry } from '../../src/adapters/mcp/resources/resource-registry.js'
import type { ResourceSource } from '../../src/adapters/mcp/resources/resource-source.js'
import { PIXEL } from './media.js'

const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/

/** Resources that the official runner reads and subscribes to. */
export function fixtureResources(): ResourceSource {
  const registry = new ResourceRegistry()
  const text = { mimeType: 'text/plain' }
  registry.register(
    { ...text, uri: 'test://static-text', name: 'Static Text Resource', description: 'text that never changes' },
    () => Promise.resolve('This is the content of the static text resource.')
  )
  registry.register(
    {
      uri: 'test://static-binary',
      name: 'Static Binary Resource',
      description: 'an image that never changes',
      mimeType: 'image/png'
    },
    () => Promise.resolve(PIXEL)
  )
  registry.register(
    { ...text, uri: 'test://watched-resource', name: 'Watched Resource', description: 'text to subscribe to' },
    () => Promise.resolve('Watched resource content')
  )
  return joinResources([registry, templated()])
}

/** `test://template/{id}/data`, for any id. */
function templated(): ResourceSource {
  const mimeType = 'application/json'
  return {
    list: () => [],
    templates: () => [
      { uriTemplate: 'test://template/{id}/data', name: 'Resource Template', description: 'data by its id', mimeType }
    ],
    read: (uri) => {
      const id = TEMPLATE.exec(uri)?.[1]
      if (id === undefined) return Promise.resolve(undefined)
      return Promise.resolve([
        { uri, mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
      ])
    }
  }
}
