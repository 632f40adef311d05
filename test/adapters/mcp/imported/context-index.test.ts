import { isSpecType } from '@modelcontextprotocol/server'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  indexHash,
  MAX_INDEX_BYTES,
  MAX_LISTED,
  NO_CONTEXT,
  readIndex
} from '../../../../src/adapters/mcp/imported/context-index.js'
import { jsonFault, RESULT_LIMITS } from '../../../../src/kit/json.js'
import { holds } from '../../../support/holds.js'

test('an index of any content is read within its bounds, and read again it is the same', async (t: Assert) => {
  const item = fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        uri: fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()),
        uriTemplate: fc.string(),
        name: fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()),
        description: fc.oneof(fc.string({ maxLength: 3000 }), fc.jsonValue()),
        arguments: fc.jsonValue(),
        annotations: fc.jsonValue(),
        icons: fc.jsonValue(),
        _meta: fc.jsonValue(),
        size: fc.double()
      },
      { requiredKeys: [] }
    )
  )
  const list = fc.oneof(fc.array(item), fc.jsonValue())
  const index = fc.record({ resources: list, templates: list, prompts: list, completes: fc.jsonValue() })
  await holds(
    t,
    fc.asyncProperty(fc.oneof(index, fc.jsonValue()), async (given) => {
      const read = await readIndex(given)
      const again = await readIndex(JSON.parse(JSON.stringify(read)))
      return jsonFault(read, RESULT_LIMITS) === null && indexHash(again) === indexHash(read)
    }),
    300
  )
})

test('a huge index is cut, and its items lose members that are too large', async (t: Assert) => {
  const many = Array.from({ length: 5000 }, (_, at) => ({ uri: `x://${at}`, name: 'x' }))
  t.is((await readIndex({ resources: many })).resources.length, MAX_LISTED.resources)
  const wide = Array.from({ length: 500 }, (_, at) => ({ uri: `x://${at}/${'y'.repeat(4000)}` }))
  const { resources } = await readIndex({ resources: wide })
  t.ok(resources.length > 100 && JSON.stringify(resources).length <= MAX_INDEX_BYTES)
  t.alike(await readIndex({ resources: [{ uri: `x://${'y'.repeat(5000)}`, name: 'long' }] }), NO_CONTEXT)
  const heavy = {
    uri: 'x://1',
    name: 'one',
    _meta: { much: 'z'.repeat(100_000) },
    icons: [],
    description: 'd'.repeat(9000)
  }
  const [one] = (await readIndex({ resources: [heavy] })).resources
  t.alike([one?.['name'], one?.['_meta'], String(one?.['description']).length], ['one', undefined, 1024])
})

test('names that imitate others by invisible letters are cleaned, and of two items with one key the first counts', async (t: Assert) => {
  const { resources, prompts } = await readIndex({
    resources: [
      { uri: 'x://1', name: 'safe\u202e\nname' },
      { uri: 'x://1', name: 'another' },
      { uri: '\ud800', name: 'half' }
    ],
    prompts: [{ name: 'p', arguments: [{ name: 'a', required: 'yes' }, 7] }, { name: '' }, null]
  })
  t.alike(resources, [{ uri: 'x://1', name: 'safe name' }])
  t.alike(prompts, [{ name: 'p', arguments: [{ name: 'a' }] }])
})

test('members that the protocol refuses are dropped: clients refuse a whole list for one', async (t: Assert) => {
  for (const wrong of [
    { annotations: { priority: 7 } },
    { annotations: { audience: ['everybody'] } },
    { icons: [7] },
    { icons: [{ src: 'x:y', sizes: '48x48' }] }
  ]) {
    const item = { name: 'one', ...wrong }
    const { resources, templates, prompts } = await readIndex({
      resources: [{ ...item, uri: 'x://1' }],
      templates: [{ ...item, uriTemplate: 'x://{a}' }],
      prompts: [{ ...item, arguments: [] }]
    })
    t.ok(resources.length === 1 && resources.every(isSpecType.Resource), JSON.stringify(wrong))
    t.ok(templates.length === 1 && templates.every(isSpecType.ResourceTemplate))
    t.ok(prompts.length === 1 && prompts.every(isSpecType.Prompt))
  }
  const right = { uri: 'x://1', name: 'one', annotations: { priority: 0.5 }, icons: [{ src: 'x:y' }] }
  t.alike((await readIndex({ resources: [right] })).resources, [right])
})
