import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import type { PromptSource } from '../../src/adapters/mcp/prompt-source.js'
import { Emitter } from '../../src/kit/events.js'
import { PIXEL } from './media.js'

type Content = GetPromptResult['messages'][number]['content']
type Fixture = readonly [description: string, args: readonly string[], (given: Readonly<Record<string, string>>) => readonly Content[]]

const FIXTURES: Readonly<Record<string, Fixture>> = {
  test_simple_prompt: ['text alone', [], () => [{ type: 'text', text: 'This is a simple prompt for testing.' }]],
  test_prompt_with_arguments: [
    'text with its arguments',
    ['arg1', 'arg2'],
    ({ arg1, arg2 }) => [{ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }]
  ],
  test_prompt_with_embedded_resource: [
    'a resource, then text',
    ['resourceUri'],
    ({ resourceUri = '' }) => [
      { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } },
      { type: 'text', text: 'Please process the embedded resource above.' }
    ]
  ],
  test_prompt_with_image: [
    'an image, then text',
    [],
    () => [
      { type: 'image', data: PIXEL.toString('base64'), mimeType: 'image/png' },
      { type: 'text', text: 'Please analyze the image above.' }
    ]
  ]
}

/** Prompts that the official runner gets. `change` adds one more, or takes it away again. */
export function fixturePrompts(): PromptSource & { change(): void } {
  const changes = new Emitter<null>(() => {})
  let hasMore = false
  return {
    list: () => [
      ...Object.entries(FIXTURES).map(([name, [description, args]]) => promptOf(name, description, args)),
      ...(hasMore ? [promptOf('test_passing_prompt', 'comes and goes', [])] : [])
    ],
    get: (name, given) => {
      const fixture = Object.hasOwn(FIXTURES, name) ? FIXTURES[name] : undefined
      if (fixture === undefined) return Promise.resolve(undefined)
      const [description, , contents] = fixture
      return Promise.resolve({ description, messages: contents(given).map((content) => ({ role: 'user', content })) })
    },
    onChange: (changed) => changes.on(() => changed()),
    change: () => {
      hasMore = !hasMore
      changes.emit(null)
    }
  }
}

function promptOf(name: string, description: string, args: readonly string[]): Prompt {
  return { name, description, arguments: args.map((one) => ({ name: one, description: `argument ${one}`, required: true })) }
}
