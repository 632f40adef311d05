import { setImmediate as turn } from 'node:timers/promises'
import type { PromptSource } from '../../src/adapters/mcp/resources/prompt-source.js'
import type { ResourceSource } from '../../src/adapters/mcp/resources/resource-source.js'
import type { ToolHandler, ToolSource } from '../../src/adapters/mcp/server/tool.js'
import { ToolRegistry } from '../../src/adapters/mcp/server/tool-registry.js'
import { mcpContent } from '../../src/adapters/mcp/tools/mcp-content.js'
import type { CompileSchema } from '../../src/kit/sign.js'
import { askingTools } from './asking.js'
import { fixturePrompts } from './prompts.js'
import { fixtureResources } from './resources.js'
import { PIXEL, SILENCE } from './media.js'

/** The parts of the server that the official runner tests. */
export interface ConformanceFixtures {
  readonly tools: ToolSource
  readonly resources: ResourceSource
  readonly prompts: PromptSource
}

/** What the official runner expects of the schema of this tool to come through whole. */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } }
    }
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' }
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  // As text: an object with `then` looks like a promise.
  ...(JSON.parse(`{
    "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
    "then": { "required": ["phone"] },
    "else": { "required": ["email"] }
  }`) as Readonly<Record<string, unknown>>),
  additionalProperties: false
}

const TEXT = { type: 'text', text: 'This is a simple text response for testing.' } as const
const IMAGE = { type: 'image', data: PIXEL.toString('base64'), mimeType: 'image/png' } as const
const AUDIO = { type: 'audio', data: SILENCE.toString('base64'), mimeType: 'audio/wav' } as const
const EMBEDDED = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' }
} as const
const MIXED = {
  type: 'resource',
  resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' }
} as const

/** Arguments that a client repeats in headers of its HTTP requests. */
const WITH_HEADERS = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' }
  },
  required: ['region']
} as const

type Content = Parameters<typeof mcpContent>[0]['content']

/** Tools whose answer is always the same. */
const CONSTANT: Readonly<Record<string, Content>> = {
  test_simple_text: [TEXT],
  test_image_content: [IMAGE],
  test_audio_content: [AUDIO],
  test_embedded_resource: [EMBEDDED],
  test_multiple_content_types: [{ type: 'text', text: 'Multiple content types test:' }, IMAGE, MIXED]
}

/**
 * Tells a third, then a half, then all; each report is on its way before the next one, or the newest alone would be
 * told.
 */
const withProgress: ToolHandler = async (_args, { progress }) => {
  for (const done of [0, 50, 100]) {
    progress({ progress: done, total: 100, message: `Completed step ${done} of 100` })
    await turn()
  }
  return mcpContent({ content: [{ type: 'text', text: 'done' }] })
}

/** Its lines go to the log of the node, and to a client that named a level; no other must be told of them. */
const withLogLines: ToolHandler = (_args, { log }) => {
  for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) log('info', line)
  return Promise.resolve(mcpContent({ content: [TEXT] }))
}

/**
 * What the official conformance runner looks for on a server: tools, resources and prompts under the runner's names,
 * through the registries that the node uses itself.
 */
export function conformanceFixtures(compileSchema: CompileSchema): ConformanceFixtures {
  const tools = new ToolRegistry(compileSchema)
  const register = (
    name: string,
    handler: ToolHandler,
    inputSchema: Readonly<Record<string, unknown>> = { type: 'object' }
  ): void => tools.register({ name, description: `a fixture of the conformance tests: ${name}`, inputSchema }, handler)
  for (const [name, content] of Object.entries(CONSTANT)) register(name, () => Promise.resolve(mcpContent({ content })))
  const prompts = fixturePrompts()
  for (const [name, handler] of Object.entries(askingTools())) register(name, handler)
  register('test_tool_with_progress', withProgress)
  register('test_tool_with_logging', withLogLines)
  register('test_logging_tool', withLogLines)
  register('test_error_handling', () =>
    Promise.reject(new Error('This tool intentionally returns an error for testing'))
  )
  register('json_schema_2020_12_tool', (args) => Promise.resolve(args), SCHEMA_2020_12)
  register('test_param_headers', (args) => Promise.resolve(args), WITH_HEADERS)
  register('test_trigger_tool_change', () => {
    if (!tools.unregister('test_passing_tool')) register('test_passing_tool', () => Promise.resolve(null))
    return Promise.resolve(null)
  })
  register('test_trigger_prompt_change', () => {
    prompts.change()
    return Promise.resolve(null)
  })
  return { tools, resources: fixtureResources(), prompts }
}
