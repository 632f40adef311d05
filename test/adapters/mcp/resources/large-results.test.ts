import test, { type Assert } from 'brittle'
import type { CallToolResult } from '@modelcontextprotocol/server'
import { LargeResults, type ResultTokens } from '../../../../src/adapters/mcp/resources/large-results.js'

const LIMITS: ResultTokens = { default: 10_000, roomy: 1_000_000, unbounded: 0 }

function scene(): LargeResults {
  let last = 0
  return new LargeResults(() => `r${++last}`)
}

function textResult(...texts: readonly string[]): CallToolResult {
  return { content: texts.map((text) => ({ type: 'text', text })) }
}

function linkOf({ content }: CallToolResult): string | undefined {
  const link = content.find(({ type }) => type === 'resource_link')
  return link?.type === 'resource_link' ? link.uri : undefined
}

test('a result beyond the limit of its client is a beginning and a link, whose pages are the whole', async (t: Assert) => {
  const results = scene().of('one')
  // An odd number of units before pairs of surrogates: an edge of a page falls into a pair.
  const text = `a${'𝄞'.repeat(60_000)}`
  const fitted = results.fit({ result: textResult('short', text), client: 'other', hasSchema: false }, LIMITS)
  t.ok(JSON.stringify(fitted).length < 10_000)
  t.alike(fitted.content[0], { type: 'text', text: 'short' })
  const pages: string[] = []
  for (let uri = linkOf(fitted); uri !== undefined; ) {
    const [page, next] = (await results.read(uri)) ?? []
    pages.push(page !== undefined && 'text' in page ? page.text : '')
    uri = next?.uri
  }
  t.ok(pages.length > 1 && pages.every((page) => page.isWellFormed()), `${pages.length} pages`)
  t.is(pages.join(''), text)
})

test('the limit is that of the client, by its name; 0 is none', (t: Assert) => {
  const result = textResult('x'.repeat(200_000))
  for (const [client, isWhole] of [
    ['other', false],
    [undefined, false],
    ['roomy', true],
    ['unbounded', true],
    ['constructor', false]
  ] as const)
    t.is(scene().of('one').fit({ result, client, hasSchema: false }, LIMITS) === result, isWhole, String(client))
})

test('other blocks stay, several texts become one resource, and promised structured content stays', async (t: Assert) => {
  const results = scene().of('one')
  const image = { type: 'image', data: 'A'.repeat(100_000), mimeType: 'image/png' } as const
  const texts = textResult('a'.repeat(30_000), 'b'.repeat(30_000), 'c')
  const structuredContent = { text: 'd'.repeat(50_000) }
  const result = { content: [image, ...texts.content], structuredContent, _meta: { cost: 1 } }
  const fitted = results.fit({ result, client: 'other', hasSchema: true }, LIMITS)
  t.alike(fitted.structuredContent, structuredContent)
  t.alike(fitted._meta, { cost: 1 })
  t.alike(fitted.content.slice(0, 2), [image, { type: 'text', text: 'a'.repeat(30_000) }])
  const [whole] = (await results.read(linkOf(fitted) ?? '')) ?? []
  t.is(whole !== undefined && 'text' in whole ? whole.text : '', `${'b'.repeat(30_000)}\nc`)
  const unpromised = results.fit(
    { result: { content: [], structuredContent }, client: 'other', hasSchema: false },
    LIMITS
  )
  t.is(unpromised.structuredContent, undefined)
  t.ok(linkOf(unpromised))
})

test('a caller reads only its own results, of pages that exist, and the oldest are dropped', async (t: Assert) => {
  const all = scene()
  const results = all.of('one')
  const link = linkOf(
    results.fit({ result: textResult('x'.repeat(50_000)), client: 'other', hasSchema: false }, LIMITS)
  )
  t.ok(await results.read(link ?? ''))
  t.is(await all.of('another').read(link ?? ''), undefined)
  for (const wrong of [
    `${link}?page=0`,
    `${link}?page=3`,
    `${link}?page=x`,
    `${link}/`,
    'a2a://results/',
    'a2a://results/none'
  ])
    t.is(await results.read(wrong), undefined, wrong)
  for (let i = 0; i < 70; i++)
    results.fit({ result: textResult('y'.repeat(1_048_576)), client: 'other', hasSchema: false }, LIMITS)
  t.is(await results.read(link ?? ''), undefined)
})

test('a caller with many or large results loses its own oldest one, and no other caller loses any', async (t: Assert) => {
  for (const [count, size] of [
    [300, 50_000],
    [70, 1_048_576]
  ] as const) {
    const all = scene()
    const keep = (caller: string, text: string): string =>
      linkOf(all.of(caller).fit({ result: textResult(text), client: 'other', hasSchema: false }, LIMITS)) ?? ''
    const quiet = keep('quiet', 'x'.repeat(50_000))
    const links = Array.from({ length: count }, () => keep('busy', 'y'.repeat(size)))
    t.ok(await all.of('quiet').read(quiet), `${count} results`)
    t.absent(await all.of('busy').read(links[0] ?? ''))
    t.ok(await all.of('busy').read(links.at(-1) ?? ''))
  }
})
