import type { GetPromptResult, Prompt } from '@modelcontextprotocol/server'
import type { PromptSource } from '../../src/adapters/mcp/resources/prompt-source.js'
import { askClient, type ClientAsk, type ClientSide } from '../../src/adapters/mcp/tools/client-ask.js'
import { Emitter } from '../../src/kit/events.js'
import { form } from './asking.js'
import { PIXEL } from './media.js'

type Content = GetPromptResult['messages'][number]['content']
type Fixture = readonly [
  description: string,
  args: readonly string[],
  (given: Readonly<Record<string, string>>) => readonly Content[]
]

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
      {
        type: 'resource',
        resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' }
      },
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

const ASKING = 'test_input_required_result_prompt'
/** Values of arguments. */
const VALUES: Readonly<Record<string, readonly string[]>> = { arg1: ['paris', 'park', 'party', 'rome'], arg2: [] }

/** Prompts that the official runner gets. `change` adds one more, or takes it away again. */
export function fixturePrompts(): PromptSource & { change(): void } {
  const changes = new Emitter<null>(() => {})
  let hasMore = false
  return {
    list: () => [
      ...Object.entries(FIXTURES).map(([name, [description, args]]) => promptOf(name, description, args)),
      promptOf(ASKING, 'asks for a context', []),
      ...(hasMore ? [promptOf('test_passing_prompt', 'comes and goes', [])] : [])
    ],
    get: (name, given, { client }) => {
      if (name === ASKING) return Promise.resolve(asked(client))
      const fixture = Object.hasOwn(FIXTURES, name) ? FIXTURES[name] : undefined
      if (fixture === undefined) return Promise.resolve(undefined)
      const [description, , contents] = fixture
      return Promise.resolve({ description, messages: contents(given).map((content) => ({ role: 'user', content })) })
    },
    complete: (name, { argument }) =>
      Promise.resolve(name === 'test_prompt_with_arguments' ? VALUES[argument] : undefined),
    onChange: (changed) => changes.on(() => changed()),
    change: () => {
      hasMore = !hasMore
      changes.emit(null)
    }
  }
}

/** Asks for a context, then is filled in with it. */
function asked(client: ClientSide): GetPromptResult | ClientAsk {
  const said = client.answer('user_context')
  if (said?.kind !== 'elicit')
    return askClient({ user_context: form('What context should the prompt use?', { context: { type: 'string' } }) })
  const text = `Context: ${String(said.content?.['context'])}`
  return { messages: [{ role: 'user', content: { type: 'text', text } }] }
}

function promptOf(name: string, description: string, args: readonly string[]): Prompt {
  return {
    name,
    description,
    arguments: args.map((one) => ({ name: one, description: `argument ${one}`, required: true }))
  }
}
