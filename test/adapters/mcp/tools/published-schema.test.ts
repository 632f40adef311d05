import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { FILES_CAPABILITIES } from '../../../../src/adapters/agents/starters/starter-files-card.js'
import { HOST_CAPABILITIES } from '../../../../src/adapters/agents/starters/starter-host.js'
import { TEXT_CAPABILITIES } from '../../../../src/adapters/agents/starters/starter-text.js'
import { a2aTools } from '../../../../src/adapters/mcp/tools/a2a-tools.js'
import { toolsOf } from '../../../../src/adapters/mcp/tools/mesh-tools.js'
import { publishedName } from '../../../../src/adapters/mcp/tools/published-names.js'
import { publishedSchema } from '../../../../src/adapters/mcp/tools/published-schema.js'
import type { CapabilityDescriptor } from '../../../../src/domain/card/card.js'
import type { NodeApi } from '../../../../src/ports/node-api.js'
import { capability } from '../../../support/fake-agents.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { REFUSALS, refusalsOf, type SentTool } from '../../../support/mcp/model-apis.js'
import { corpusAgents } from '../../../support/mcp/tools-corpus/corpus.js'

const compileSchema = createSchemaCompiler()
const deps = { api: {} as NodeApi, clock: new ManualClock(), compileSchema, toJson: (value: unknown) => value }

type Schema = Readonly<Record<string, unknown>>

function sent(inputSchema: Schema, name = 'tool'): SentTool {
  return { name: publishedName(name), inputSchema: publishedSchema(inputSchema) }
}

function published(capabilities: readonly CapabilityDescriptor[], id = 'agent'): readonly SentTool[] {
  const [agent] = corpusAgents()
  if (agent === undefined) throw new Error('the corpus is empty')
  return toolsOf({ ...agent, id, capabilities }, deps).map(({ definition }) =>
    sent(definition.inputSchema, definition.name)
  )
}

/** Schemas as generators of the languages write them, and odd ones of people. */
const AWKWARD: Readonly<Record<string, Schema>> = {
  'zod with a schema word': {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      edits: {
        type: 'array',
        items: { type: 'object', properties: { oldText: { type: 'string' } }, required: ['oldText'] }
      },
      mode: { type: 'string', const: 'fast' },
      level: { type: 'integer', exclusiveMinimum: 0, maximum: 9007199254740991 },
      when: { type: ['string', 'null'], format: 'date-time' },
      any: {}
    },
    required: ['edits'],
    additionalProperties: false
  },
  'pydantic with titles, definitions and null': {
    type: 'object',
    title: 'searchArguments',
    $defs: { Order: { enum: ['asc', 'desc'], title: 'Order', type: 'string' } },
    properties: {
      repo_path: { title: 'Repo Path', type: 'string' },
      limit: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null, title: 'Limit' },
      order: { $ref: '#/$defs/Order', default: 'asc', description: 'Direction' },
      tags: { items: {}, title: 'Tags', type: 'array' }
    },
    required: ['repo_path']
  },
  'choice at the root': {
    anyOf: [
      { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
      { type: 'object', properties: { name: { type: 'string' }, org: { type: 'string' } }, required: ['name', 'org'] }
    ]
  },
  'all of references': {
    type: 'object',
    definitions: {
      base: { type: 'object', properties: { id: { type: 'string', description: 'Its id' } }, required: ['id'] }
    },
    allOf: [{ $ref: '#/definitions/base' }, { properties: { size: { type: 'number' } } }]
  },
  'recursive tree': {
    type: 'object',
    properties: { root: { $ref: '#/$defs/node' } },
    required: ['root'],
    $defs: {
      node: {
        type: 'object',
        description: 'A node of the tree',
        properties: {
          value: { type: 'string', format: 'uri' },
          children: { type: 'array', items: { $ref: '#/$defs/node' } }
        }
      }
    }
  },
  itself: { type: 'object', properties: { next: { $ref: '#' }, sibling: { $ref: '#/properties/next' } } },
  'circle of nothing': {
    type: 'object',
    properties: { a: { $ref: '#/$defs/a' } },
    $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }
  },
  'tuple of draft 4': {
    type: 'object',
    properties: {
      at: { type: 'array', items: [{ type: 'number' }, { type: 'number' }] },
      on: { type: 'number', exclusiveMinimum: true, minimum: 1 }
    }
  },
  'tuple of 2020': {
    type: 'object',
    properties: { at: { type: 'array', prefixItems: [{ type: 'string' }, true], items: false } }
  },
  'numbers as values': {
    type: 'object',
    properties: { port: { enum: [80, 443] }, on: { enum: [true, false, null] }, empty: { enum: ['', 'a'] } }
  },
  'foreign names': {
    type: 'object',
    properties: { 'file name': { type: 'string' }, größe: { type: 'number' }, ok: true, no: false },
    required: ['file name', 'missing']
  },
  patterns: {
    type: 'object',
    patternProperties: { '^x-': { type: 'string' } },
    properties: {
      a: { type: 'string', pattern: '^(?=.*\\d).+$' },
      b: { pattern: '^[a-z]+$' },
      c: { type: 'string', pattern: '(' }
    },
    propertyNames: { maxLength: 9 }
  },
  conditions: {
    type: 'object',
    properties: { kind: { enum: ['a', 'b'] } },
    if: { properties: { kind: { const: 'a' } } },
    ...(JSON.parse('{"then": {"required": ["x"], "properties": {"x": {"type": "string"}}}}') as object),
    else: { properties: { y: {} } },
    dependentRequired: { x: ['y'] }
  },
  'discriminated union': {
    type: 'object',
    properties: {
      shape: {
        oneOf: [
          { type: 'object', properties: { kind: { const: 'circle' }, r: { type: 'number' } }, required: ['kind', 'r'] },
          { type: 'object', properties: { kind: { const: 'box' }, w: { type: 'number' } }, required: ['kind', 'w'] }
        ],
        discriminator: { propertyName: 'kind' }
      }
    }
  },
  'nested choice of members': {
    type: 'object',
    properties: {
      q: {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'string' } },
        oneOf: [{ required: ['a'] }, { required: ['b'] }]
      }
    }
  },
  OpenAPI: {
    type: 'object',
    properties: {
      n: { type: 'string', nullable: true, example: 'x', readOnly: true },
      f: { type: 'file' },
      a: { type: 'any' }
    }
  },
  'outside references': {
    type: 'object',
    properties: { a: { $ref: 'https://example.com/schema.json' }, b: { $ref: '#anchor' }, c: { $dynamicRef: '#meta' } }
  },
  'no properties': { type: 'object' }
}

test('the table of refusals refuses each of its rows', (t: Assert) => {
  const refused = new Set(Object.values(AWKWARD).flatMap((inputSchema) => refusalsOf({ name: 'tool', inputSchema })))
  for (const [api, rule] of REFUSALS.filter(([, name]) => !name.startsWith('a root that is no object')))
    t.ok(refused.has(`${api}: ${rule}`), `${api}: ${rule}`)
  t.ok(refused.has('claude: no JSON Schema of draft 2020-12'))
  t.alike(refusalsOf({ name: 'x'.repeat(50), inputSchema: { type: 'object', properties: {} } }), ['all: its name'])
})

test('Claude, OpenAI and Gemini take a published tool of any schema', (t: Assert) => {
  for (const [title, schema] of Object.entries(AWKWARD)) {
    t.alike(refusalsOf(sent({ type: 'object', ...schema })), [], title)
    for (const tool of published([
      capability('a.b', { inputSchema: schema }),
      capability('a.list', { inputSchema: { type: 'array', items: schema } })
    ]))
      t.alike(refusalsOf(tool), [], `${title} of an agent`)
  }
})

test('Claude, OpenAI and Gemini take every tool of the node, of the starters and of 25 imported servers', (t: Assert) => {
  const own = a2aTools(deps).map(({ definition }) => sent(definition.inputSchema, definition.name))
  const starters = [TEXT_CAPABILITIES, FILES_CAPABILITIES, HOST_CAPABILITIES].flatMap((all) => published(all))
  const imported = corpusAgents().flatMap(({ id, capabilities }) => published(capabilities, id))
  t.is(imported.length, 391)
  t.ok(starters.length > 5)
  t.alike(
    [...own, ...starters, ...imported].flatMap((tool) => refusalsOf(tool).map((why) => `${tool.name}: ${why}`)),
    []
  )
})

test('a schema that every client takes is published as it is', (t: Assert) => {
  const schema = {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Where', format: 'uri', minLength: 1, pattern: '^/' },
      size: { type: 'integer', minimum: 1, maximum: 9, default: 3 },
      kinds: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
      more: {
        type: 'object',
        properties: { deep: { type: 'boolean' } },
        required: ['deep'],
        additionalProperties: false
      }
    },
    required: ['path', 'kinds'],
    additionalProperties: false
  }
  t.alike(publishedSchema(schema), schema)
})

test('recursive references, definitions, formats and descriptions stay', (t: Assert) => {
  const schema = AWKWARD['recursive tree'] ?? {}
  t.alike(publishedSchema(schema), schema)
  const order = (publishedSchema(AWKWARD['pydantic with titles, definitions and null'] ?? {})['properties'] as Schema)[
    'order'
  ]
  t.alike(order, { description: 'Direction', default: 'asc', anyOf: [{ $ref: '#/$defs/Order' }] })
})

test('variants at the root become members, and the description says which of them are needed', (t: Assert) => {
  const { properties, required, description } = publishedSchema({ type: 'object', ...AWKWARD['choice at the root'] })
  t.alike(Object.keys(properties as Schema), ['id', 'name', 'org'])
  t.alike([required, description], [undefined, 'Needs one of: id; name and org.'])
  const stats = TEXT_CAPABILITIES[0]?.inputSchema as Schema
  t.is(publishedSchema(stats)['description'], 'Needs one of: text; bytes.')
  const union = {
    oneOf: ['circle', 'box'].map((kind) => ({
      type: 'object',
      properties: { kind: { const: kind } },
      required: ['kind']
    }))
  }
  t.alike(publishedSchema(union), {
    type: 'object',
    properties: { kind: { type: 'string', enum: ['circle', 'box'] } },
    required: ['kind']
  })
})

test('a description names keywords that clients refuse and models need', (t: Assert) => {
  const { description } = publishedSchema(AWKWARD['foreign names'] ?? {})
  t.is(description, 'Also takes "file name", "größe".')
  const properties = publishedSchema(AWKWARD['numbers as values'] ?? {})['properties'] as Record<string, Schema>
  t.alike(properties['port'], { type: 'number', description: 'One of 80, 443.' })
})

test('any schema of a peer is published in bounded time, in a form that every client takes', async (t: Assert) => {
  const { schema } = fc.letrec((tie) => ({
    schema: fc.oneof(
      { depthSize: 'small' },
      fc.boolean(),
      fc.constant({}),
      fc.record(
        {
          type: fc.constantFrom(
            'object',
            'array',
            'string',
            'integer',
            'nonsense',
            ['string', 'null'],
            ['object', 'array']
          ),
          properties: fc.dictionary(fc.constantFrom('a', 'b', 'c d', '__proto__'), tie('schema')),
          required: fc.array(fc.constantFrom('a', 'b', 'z', 7)),
          items: fc.oneof(tie('schema'), fc.array(tie('schema'))),
          anyOf: fc.array(tie('schema')),
          oneOf: fc.array(tie('schema')),
          allOf: fc.array(tie('schema')),
          $ref: fc.constantFrom('#', '#/$defs/a', '#/properties/a', '#/$defs/b/items', 'x', 7),
          enum: fc.array(fc.constantFrom('x', '', 1, null)),
          const: fc.constantFrom('x', 1, null),
          description: fc.constantFrom('text', 7),
          pattern: fc.constantFrom('^a', '(', '(?<=a)b'),
          $defs: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema'))
        },
        { requiredKeys: [] }
      )
    )
  }))
  const property = fc.property(schema, (value) => {
    const refused = published([capability('a.b', { inputSchema: value })]).flatMap(refusalsOf)
    if (refused.length > 0) throw new Error(refused.join('; '))
  })
  await holds(t, property, 150)
})

test('a schema that merges into itself many times is published without much work', (t: Assert) => {
  const names = Array.from({ length: 30 }, (_, at) => `d${at}`)
  const twice = (at: number): Schema => ({ allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] })
  const $defs = Object.fromEntries(names.map((name, at) => [name, at === 29 ? { type: 'object' } : twice(at)]))
  const wide = Object.fromEntries(Array.from({ length: 6000 }, (_, at) => [`p${at}`, { type: 'string' }]))
  for (const schema of [
    { type: 'object', ...twice(-1), $defs },
    { type: 'object', properties: wide }
  ])
    t.alike(refusalsOf(sent(schema)), [])
})

test('a schema of long chains, repeated texts or many variants is published within bounds', (t: Assert) => {
  const chain = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, at) => [
      `d${at}`,
      { type: 'object', properties: { next: { $ref: `#/$defs/d${at + 1}` } } }
    ])
  )
  const texts = { type: 'object', description: 'x'.repeat(64_000), properties: { a: { type: 'string' } } }
  const repeats = Array.from({ length: 500 }, (_, at) => [`p${at}`, { allOf: [{ $ref: '#/$defs/long' }] }])
  const variants = Array.from({ length: 500 }, (_, at) => ({
    properties: { [`v${at}`]: { type: 'string' } },
    required: [`v${at}`]
  }))
  for (const schema of [
    { type: 'object', properties: { first: { $ref: '#/$defs/d0' } }, $defs: chain },
    { type: 'object', properties: Object.fromEntries(repeats), $defs: { long: texts } },
    { type: 'object', anyOf: variants }
  ]) {
    const publication = sent(schema)
    t.alike(refusalsOf(publication), [])
    t.ok(JSON.stringify(publication).length < 200_000)
  }
})
