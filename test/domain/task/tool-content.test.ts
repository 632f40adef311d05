import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { contentOf, failedContent, isToolContent, withBytes } from '../../../src/domain/task/tool-content.js'
import { holds } from '../../support/holds.js'

const TEXT = { type: 'text', text: 'one' } as const
const PICTURE = Buffer.alloc(3000, 7).toString('base64')

test('a value is tool content when it has blocks of the known kinds, and no other members', (t: Assert) => {
  const link = { type: 'resource_link', uri: 'a://b', name: 'b' }
  const file = { type: 'resource', resource: { uri: 'a://b', blob: 'AAAA' } }
  for (const block of [TEXT, link, file, { ...TEXT, annotations: { priority: 1 } }])
    t.ok(isToolContent({ content: [block] }), JSON.stringify(block))
  t.ok(isToolContent({ content: [], structuredContent: {}, isError: false, _meta: {} }))
  for (const value of [
    null,
    'text',
    [TEXT],
    { content: 'text' },
    { content: [TEXT], pages: 3 },
    { content: [TEXT], structuredContent: [] },
    { content: [TEXT], isError: 'no' },
    { content: [{ type: 'text' }] },
    { content: [{ type: 'image', data: 'AAAA' }] },
    { content: [{ type: 'resource', resource: { uri: 'a://b' } }] },
    { content: [{ type: 'constructor' }] }
  ])
    t.absent(isToolContent(value), JSON.stringify(value))
})

test('only base64 text that gives itself again becomes bytes, in at most 32 blocks', (t: Assert) => {
  const image = (data: string): { type: string; data: string; mimeType: string } => ({
    type: 'image',
    data,
    mimeType: 'image/png'
  })
  const odd = `${PICTURE.slice(0, -4)}\n${PICTURE.slice(-4)}`
  const { content } = withBytes({
    content: [
      TEXT,
      image(PICTURE),
      image(odd),
      image('AAAA'),
      { type: 'resource', resource: { uri: 'a', blob: PICTURE } }
    ]
  })
  const isBytes = (value: unknown): boolean => value instanceof Uint8Array
  t.alike(
    content.map(({ data, resource }) => isBytes(data) || isBytes((resource as { blob?: unknown } | undefined)?.blob)),
    [false, true, false, false, true]
  )
  const many = withBytes({ content: Array.from({ length: 40 }, () => image(PICTURE)) })
  t.is(many.content.filter(({ data }) => isBytes(data)).length, 32)
})

test('a result in the form of MCP is that of its agent, or the result itself, else the plain one', (t: Assert) => {
  const content = { content: [TEXT] }
  t.alike(contentOf({ result: 'one', content }), content)
  t.alike(contentOf({ result: content }), content)
  t.alike(contentOf({ result: { a: 1 } }), { a: 1 })
})

test('no value makes the look for content throw', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.anything(), (value) => {
      isToolContent(value)
      isToolContent({ content: [value] })
      const found = failedContent({ content: value })
      return found === null || found.isError === true
    })
  )
})
