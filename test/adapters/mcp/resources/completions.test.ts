import test, { type Assert } from 'brittle'
import { MeshResources } from '../../../../src/adapters/mcp/resources/mesh-resources.js'
import type { PromptSource } from '../../../../src/adapters/mcp/resources/prompt-source.js'
import { joinResources } from '../../../../src/adapters/mcp/resources/resource-registry.js'
import type { ResourceSource } from '../../../../src/adapters/mcp/resources/resource-source.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { echo } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'
import { CLAIM, McpScene, request } from '../../../support/mcp.js'

const MANY = Array.from({ length: 150 }, (_, at) => `many-${at}`)

function prompts(): PromptSource {
  return {
    list: () => [{ name: 'silent' }, { name: 'greet' }],
    get: () => Promise.resolve(undefined),
    complete: (name, { argument, given }) => {
      if (name !== 'greet') return Promise.resolve(undefined)
      if (argument === 'broken') return Promise.reject(new NodeError('SANDBOX_VIOLATION', 'not in your sandbox'))
      if (argument === 'many') return Promise.resolve(MANY)
      return Promise.resolve(given['language'] === 'de' ? ['Berta', 'Bernd'] : ['Ada', 'Alan', 'Ada', 'Bob'])
    }
  }
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`arguments of prompts are completed (${mode})`, async (t: Assert) => {
    const client = await new McpScene({ prompts: prompts() }).client(t, mode)
    t.ok(client.getServerCapabilities()?.completions)
    const ref = { type: 'ref/prompt', name: 'greet' } as const
    const { completion } = await client.complete({ ref, argument: { name: 'who', value: 'A' } })
    t.alike(completion, { values: ['Ada', 'Alan'], total: 2, hasMore: false })
    const given = await client.complete({
      ref,
      argument: { name: 'who', value: 'Ber' },
      context: { arguments: { language: 'de' } }
    })
    t.alike(given.completion.values, ['Berta', 'Bernd'])
    const many = await client.complete({ ref, argument: { name: 'many', value: '' } })
    t.alike([many.completion.values.length, many.completion.total, many.completion.hasMore], [100, 150, true])
    const silent = await client.complete({
      ref: { type: 'ref/prompt', name: 'silent' },
      argument: { name: 'x', value: '' }
    })
    t.alike(silent.completion.values, [])
    await t.exception(
      () => client.complete({ ref: { type: 'ref/prompt', name: 'no' }, argument: { name: 'x', value: '' } }),
      /no prompt/
    )
    await t.exception(() => client.complete({ ref, argument: { name: 'broken', value: '' } }), /sandbox/)
  })
}

test('variables of the resources of the mesh are completed from the values that the caller sees', async (t: Assert) => {
  const world = new World(t)
  const node = await world.owner({ agents: [echo('text'), echo('tests'), echo('other')] })
  const resources = joinResources([
    new MeshResources({ api: node.api(), clock: world.clock, toJson: (value) => value })
  ])
  const client = await new McpScene({ resources }).client(t, 'auto')
  const ref = { type: 'ref/resource', uri: 'a2a://agents/{address}' } as const
  const { completion } = await client.complete({ ref, argument: { name: 'address', value: 'te' } })
  t.is(completion.values.length, 2)
  t.ok(completion.values.every((one) => one.startsWith('te')))
  for (const uri of ['a2a://documents/{name}', 'a2a://swarms/{id}']) {
    t.alike(
      (await client.complete({ ref: { type: 'ref/resource', uri }, argument: { name: 'x', value: '' } })).completion
        .values,
      []
    )
  }
  await t.exception(
    () => client.complete({ ref: { type: 'ref/resource', uri: 'a2a://no' }, argument: { name: 'x', value: '' } }),
    /no resources/
  )
})

test('where nothing completes, completion is neither announced nor answered', async (t: Assert) => {
  const resources: ResourceSource = { list: () => [], read: () => Promise.resolve(undefined) }
  const client = new McpScene({ resources: joinResources([resources]) }).connect(t)
  const { result } = await client.open()
  const capabilities = result?.['capabilities'] as Record<string, unknown> | undefined
  t.absent(capabilities?.['completions'])
  t.ok(capabilities?.['resources'])
  const params = { ref: { type: 'ref/prompt', name: 'a' }, argument: { name: 'a', value: '' } }
  t.is((await client.ask(request(1, 'completion/complete', params))).error?.code, -32_601)
})

test('a completion of the wrong shape is refused before anything is asked', async (t: Assert) => {
  const client = new McpScene({ prompts: prompts() }).connect(t)
  const [ref, argument] = [
    { type: 'ref/prompt', name: 'greet' },
    { name: 'who', value: '' }
  ]
  const wrong: readonly object[] = [
    {},
    { ref },
    { ref: 'greet', argument },
    { ref: { type: 'ref/prompt' }, argument },
    { ref: { type: 'ref/tool', name: 'greet', uri: 'a' }, argument },
    { ref: { type: 'ref/resource', name: 'greet' }, argument },
    { ref, argument: { name: 'who' } },
    { ref, argument: { name: 1, value: '' } },
    { ref, argument, context: [] },
    { ref, argument, context: { arguments: { a: 1 } } }
  ]
  for (const [id, params] of wrong.entries()) {
    const { error } = await client.ask(request(id, 'completion/complete', { ...params, _meta: CLAIM }))
    t.is(error?.code, -32_602, JSON.stringify(params))
  }
})
