import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { joinResources, ResourceRegistry } from '../../../../src/adapters/mcp/resources/resource-registry.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'

const signal = new AbortController().signal

test('Feature: a2a-mcp-protocols, Property 21: MCP resource registration and read round trip', async (t: Assert) => {
  const resource = fc.record({
    uri: fc.webUrl(),
    name: fc.string(),
    mimeType: fc.constantFrom('text/plain', 'application/json', 'image/png'),
    content: fc.oneof(fc.string(), fc.uint8Array())
  })
  await holds(
    t,
    fc.asyncProperty(fc.uniqueArray(resource, { selector: ({ uri }) => uri, maxLength: 20 }), async (all) => {
      const registry = new ResourceRegistry()
      for (const { content, ...one } of all) registry.register(one, () => Promise.resolve(content))
      for (const { uri, mimeType, content } of all) {
        const [read] = (await registry.read(uri, signal)) ?? []
        if (read?.mimeType !== mimeType || read.uri !== uri) return false
        const value = 'text' in read ? read.text : new Uint8Array(Buffer.from(read.blob, 'base64'))
        if (typeof content === 'string' ? value !== content : Buffer.compare(Buffer.from(value), content) !== 0)
          return false
      }
      const listed = registry.list().map(({ uri, name, mimeType }) => [uri, name, mimeType])
      return JSON.stringify(listed) === JSON.stringify(all.map(({ uri, name, mimeType }) => [uri, name, mimeType]))
    }),
    100
  )
})

test('a URI is taken once, free again after its release, and its changes are reported', async (t: Assert) => {
  const registry = new ResourceRegistry()
  let changes = 0
  const stop = registry.onChange(() => changes++)
  const one = { uri: 'a2a://one', name: 'one', mimeType: 'text/plain' }
  registry.register(one, () => Promise.resolve('first'))
  await failsWith(t, 'CONFLICT', () =>
    Promise.resolve().then(() => registry.register(one, () => Promise.resolve('second')))
  )
  t.ok(registry.unregister(one.uri))
  t.absent(registry.unregister(one.uri))
  registry.register(one, () => Promise.resolve('third'))
  t.alike(await registry.read(one.uri, signal), [{ uri: one.uri, mimeType: 'text/plain', text: 'third' }])
  t.is(changes, 3)
  stop()
  registry.unregister(one.uri)
  t.is(changes, 3)
  t.is(await registry.read(one.uri, signal), undefined)
})

test('of two sources with the same URI the earlier one is read', async (t: Assert) => {
  const [first, second] = [new ResourceRegistry(), new ResourceRegistry()]
  const one = { uri: 'a2a://one', name: 'one', mimeType: 'text/plain' }
  second.register(one, () => Promise.resolve('second'))
  const joined = joinResources([first, second])
  t.alike(await joined.read(one.uri, signal), [{ uri: one.uri, mimeType: 'text/plain', text: 'second' }])
  first.register(one, () => Promise.resolve('first'))
  t.alike(await joined.read(one.uri, signal), [{ uri: one.uri, mimeType: 'text/plain', text: 'first' }])
  t.is(await joined.read('a2a://nothing', signal), undefined)
})
