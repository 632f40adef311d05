import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  mayFit,
  originOf,
  publishedTemplate,
  publishedUri
} from '../../../../src/adapters/mcp/resources/resource-uri.js'
import { holds } from '../../../support/holds.js'

const address = fc.oneof(fc.constant('demo@a'), fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }))
const text = fc.oneof(
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }),
  fc.string({ unit: fc.constantFrom('a', ':', '/', '.', '%2e', '%', '~', '{', '}', '#', '?', ' '), minLength: 1 })
)

test('every URI of a server has one published URI, which leads back to it', async (t: Assert) => {
  await holds(
    t,
    fc.property(address, text, (agent, uri) => {
      const published = publishedUri({ address: agent, uri })
      const origin = originOf(published)
      return origin?.address === agent && origin.uri === uri
    }),
    1000
  )
})

test('a published URI is one that parsers of URLs leave as it is', async (t: Assert) => {
  await holds(
    t,
    fc.property(address, text, (agent, uri) => {
      const published = publishedUri({ address: agent, uri })
      return new URL(published).href === published
    }),
    1000
  )
})

test('texts of any kind are read without an error', async (t: Assert) => {
  const given = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('%', '~', '/', 'z', '\ud800') }).map((rest) => `a2a://resources/${rest}`)
  )
  await holds(
    t,
    fc.property(given, (one) => {
      const origin = originOf(one)
      return origin === null || (origin.address !== '' && origin.uri !== '')
    }),
    1000
  )
  t.is(originOf(`a2a://resources/a/x:${'y'.repeat(20_000)}`), null, 'nor does a long one cost anything')
})

test('a template keeps its expressions, and one that gives no URIs is not published', (t: Assert) => {
  const of = (uri: string): string | null => publishedTemplate({ address: 'demo@a', uri })
  t.is(of('test://by/{id}/data{?page,size}'), 'a2a://resources/demo%40a/test://by/{id}/data{?page,size}')
  t.is(of('file:///{+path}'), 'a2a://resources/demo%40a/file:///{+path}')
  for (const one of [
    '{scheme}://x',
    'test://{',
    'test://}{',
    'test://a b/{id}',
    'test://../{id}',
    `x:{${'i'.repeat(300)}}`
  ])
    t.is(of(one), null, one)
})

test('a URI may fit a template by the text around its expressions', (t: Assert) => {
  t.ok(mayFit('test://by/{id}/data', 'test://by/7/data'))
  t.ok(mayFit('test://by{?page}', 'test://by?page=1'))
  t.absent(mayFit('test://by/{id}/data', 'test://by/7'))
  t.absent(mayFit('test://by/{id}/y/data', 'test://by/data'), 'beginning and end do not share text')
  t.absent(mayFit('{any}', 'test://by/7'), 'a template of everything fits nothing')
})
