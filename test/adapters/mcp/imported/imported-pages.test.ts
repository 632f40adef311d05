import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { readPages } from '../../../../src/adapters/mcp/imported/imported-pages.js'

/** A page of named tools. */
function page(names: string, nextCursor?: unknown): { items: object[]; nextCursor: unknown } {
  return { items: [...names].map((name) => ({ name })), nextCursor }
}

/** Names and note of what is read of a server with these pages by their cursor; '' is the first. */
async function read(
  pages: Readonly<Record<string, ReturnType<typeof page>>>
): Promise<readonly [string, string | null]> {
  const { items, note } = await readPages((cursor) => Promise.resolve(pages[cursor ?? ''] ?? page('')))
  return [items.map((tool) => (tool as { name: string }).name).join(''), note]
}

const CURSOR = 'its tool list repeats a cursor'
const PAGE = 'its tool list repeats a page'

test('cursors of every kind end a tool list and hide no tool', async (t: Assert) => {
  t.alike(await read({ '': page('ab', 'x'), x: page('c', null) }), ['abc', null], 'the end by null')
  t.alike(await read({ '': page('ab', '') }), ['ab', null], 'an empty cursor is none')
  t.alike(await read({ '': page('ab', 7) }), ['ab', null], 'nor is one that is no text')
  t.alike(await read({ '': page('a', 'x'), x: page('b', 'x') }), ['ab', CURSOR], 'the same cursor again')
  t.alike(await read({ '': page('a', 'x'), x: page('b', 'y'), y: page('c', 'x') }), ['abc', CURSOR], 'a circle of two')
  t.alike(
    await read({ '': page('ab', 'x'), x: page('ab', 'y'), y: page('ab', 'z') }),
    ['ab', PAGE],
    'the first page for every cursor'
  )
  t.alike(
    await read({ '': page('', 'x'), x: page('', 'y'), y: page('a') }),
    ['a', null],
    'empty pages before a full one'
  )
  t.alike(await read({ '': page('ab', 'x'), x: page('bc') }), ['abc', null], 'a tool of two pages counts once')
  await t.exception(
    readPages((cursor) => Promise.resolve(page('', `${cursor}x`))),
    /more than 64 pages/
  )
})

test('every page that was read counts and the reading ends, for any cursors of a server', async (t: Assert) => {
  const cursor = fc.constantFrom('', 'p0', 'p1', 'p2', 'p3', 'p4')
  await fc.assert(
    fc.asyncProperty(fc.array(cursor, { minLength: 6, maxLength: 6 }), async (next) => {
      const asked = new Set<string>()
      const { items, note } = await readPages((from) => {
        const at = from === null ? 5 : Number(from.slice(1))
        asked.add(`tool${at}`)
        return Promise.resolve({ items: [{ name: `tool${at}` }], nextCursor: next[at] })
      })
      t.alike(new Set(items.map((tool) => (tool as { name: string }).name)), asked)
      t.is(items.length, asked.size)
      const last = [...asked].at(-1) ?? ''
      t.is(note === null, next[Number(last.slice(4))] === '')
    })
  )
})
