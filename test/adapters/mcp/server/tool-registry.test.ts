import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import type { ToolDefinition } from '../../../../src/adapters/mcp/server/tool.js'
import { MAX_TOOLS, ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { asNodeError } from '../../../../src/kit/errors.js'
import { ANYTHING } from '../../../support/mcp.js'

const nothing = (): Promise<null> => Promise.resolve(null)

function refusal(registry: ToolRegistry, definition: unknown): string | null {
  try {
    registry.register(definition as ToolDefinition, nothing)
    return null
  } catch (error) {
    return asNodeError(error).code
  }
}

test('definitions that cannot be served are refused with INVALID_INPUT, and nothing of them stays', (t: Assert) => {
  const registry = new ToolRegistry(createSchemaCompiler())
  const good = { name: 'a.b', description: '', inputSchema: ANYTHING }
  const wrong: readonly unknown[] = [
    { ...good, name: '' },
    { ...good, name: 7 },
    { ...good, name: 'a\nb' },
    { ...good, name: 'x'.repeat(257) },
    { ...good, description: undefined },
    { ...good, inputSchema: undefined },
    { ...good, inputSchema: true },
    { ...good, inputSchema: {} },
    { ...good, inputSchema: { type: 'string' } },
    { ...good, inputSchema: { type: ['object'] } },
    { ...good, inputSchema: { type: 'object', properties: 7 } },
    { ...good, inputSchema: { type: 'object', $ref: 'https://example.com/schema' } },
    { ...good, outputSchema: { type: 'array' } }
  ]
  for (const definition of wrong) {
    t.is(refusal(registry, definition), 'INVALID_INPUT', JSON.stringify(definition).slice(0, 100))
    t.absent(registry.validateDefinition(definition as ToolDefinition).valid)
  }
  t.is(registry.list().length, 0)
  t.alike(registry.validateDefinition(good), { valid: true, errors: [] })
  t.is(refusal(registry, good), null)
  t.is(refusal(registry, good), 'CONFLICT')
})

test('equal schemas share a validator, for any order of their keys', (t: Assert) => {
  const registry = new ToolRegistry(createSchemaCompiler())
  const first = { type: 'object', required: ['a'], properties: { a: { type: 'integer' } } }
  const second = { properties: { a: { type: 'integer' } }, required: ['a'], type: 'object' }
  registry.register({ name: 'first', description: '', inputSchema: first }, nothing)
  registry.register({ name: 'second', description: '', inputSchema: second }, nothing)
  registry.register({ name: 'third', description: '', inputSchema: ANYTHING }, nothing)
  t.is(registry.get('first')?.validator, registry.get('second')?.validator)
  t.not(registry.get('first')?.validator, registry.get('third')?.validator)
})

test('a definition that its author changes later stays as it was registered', (t: Assert) => {
  const registry = new ToolRegistry(createSchemaCompiler())
  const inputSchema = { type: 'object', required: ['a'] }
  registry.register({ name: 'a', description: '', inputSchema }, nothing)
  inputSchema.required.pop()
  t.alike(registry.list()[0].inputSchema, { type: 'object', required: ['a'] })
  t.is(registry.get('a')?.validator({}).length, 1)
})

test('10,000 tools of 100 schemas are registered and found', (t: Assert) => {
  const registry = new ToolRegistry(createSchemaCompiler())
  let changes = 0
  const end = registry.onChange(() => changes++)
  for (let i = 0; i < 10_000; i++) {
    const inputSchema = { type: 'object', properties: { [`p${i % 100}`]: { type: 'string' } } }
    registry.register({ name: `agent${i % 50}.tool${i}`, description: 'does something', inputSchema }, nothing)
  }
  end()
  t.is(registry.get('agent7__tool7')?.definition.name, 'agent7.tool7')
  t.is(new Set(registry.list().map((one) => registry.get(one.name)?.validator)).size, 100)
  t.is(changes, 10_000)
  t.ok(registry.unregister('agent7.tool7'))
  t.absent(registry.unregister('agent7.tool7'))
  t.is(registry.get('agent7__tool7'), undefined)
  t.is(registry.list().length, 9999)
})

test('tools beyond the limit are refused, and a removed tool frees a slot', (t: Assert) => {
  const registry = new ToolRegistry(createSchemaCompiler())
  const register = (name: string): void =>
    registry.register({ name, description: '', inputSchema: { type: 'object' } }, nothing)
  for (let i = 0; i < MAX_TOOLS; i++) register(`tool${i}`)
  t.is(refusal(registry, { name: 'more', description: '', inputSchema: { type: 'object' } }), 'OVERLOADED')
  t.ok(registry.unregister('tool0'))
  register('more')
  t.is(registry.list().length, MAX_TOOLS)
})
