import type { PrimitiveSchemaDefinition } from '@modelcontextprotocol/server'
import {
  askClient,
  type ClientAnswer,
  type ClientRequest,
  type ClientSide
} from '../../src/adapters/mcp/tools/client-ask.js'
import type { ToolHandler } from '../../src/adapters/mcp/server/tool.js'
import { mcpContent } from '../../src/adapters/mcp/tools/mcp-content.js'

type FormProperties = Record<string, PrimitiveSchemaDefinition>

/** Questions under names, and what makes the end of their answers. */
type Rounds = readonly [questions: (args: Args) => Readonly<Record<string, ClientRequest>>, state?: unknown]
type Args = Readonly<Record<string, unknown>>

/** A form for the person at the client. */
export function form(message: string, properties: FormProperties, required = Object.keys(properties)): ClientRequest {
  return {
    method: 'elicitation/create',
    params: { message, requestedSchema: { type: 'object', properties, required } }
  }
}

function sampling(asked: string, maxTokens = 100): ClientRequest {
  return {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: asked } }], maxTokens }
  }
}

const ROOTS: ClientRequest = { method: 'roots/list', params: {} }
const NAME = { name: { type: 'string' } } as const
const OK = form('Please confirm', { ok: { type: 'boolean' } })

const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true }
} as const

const CHOICES = ['option1', 'option2', 'option3']
const TITLED = [
  { const: 'value1', title: 'First' },
  { const: 'value2', title: 'Second' },
  { const: 'value3', title: 'Third' }
]
const ENUMS: FormProperties = {
  untitledSingle: { type: 'string', enum: CHOICES },
  titledSingle: { type: 'string', oneOf: TITLED },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three']
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: CHOICES } },
  titledMulti: { type: 'array', items: { anyOf: TITLED } }
}

/** Tools that ask once, then tell what they heard. */
const ONCE: Readonly<Record<string, Rounds>> = {
  test_sampling: [({ prompt }) => ({ answer: sampling(String(prompt)) })],
  test_elicitation: [
    ({ message }) => ({ answer: form(String(message), { username: { type: 'string' }, email: { type: 'string' } }) })
  ],
  test_elicitation_sep1034_defaults: [() => ({ answer: form('Check these', DEFAULTS, []) })],
  test_elicitation_sep1330_enums: [() => ({ answer: form('Choose', ENUMS, []) })],
  test_streaming_elicitation: [() => ({ answer: OK })],
  test_missing_capability: [() => ({ answer: sampling('Anybody there?') })],
  test_input_required_result_elicitation: [() => ({ user_name: form('What is your name?', NAME) })],
  test_input_required_result_sampling: [() => ({ capital_question: sampling('What is the capital of France?') })],
  test_input_required_result_list_roots: [() => ({ client_roots: ROOTS })],
  test_input_required_result_request_state: [() => ({ confirm: OK }), { round: 1 }],
  test_input_required_result_tampered_state: [() => ({ confirm: OK }), { round: 1 }],
  test_input_required_result_multiple_inputs: [
    () => ({
      user_name: form('What is your name?', NAME),
      greeting: sampling('Generate a greeting', 50),
      client_roots: ROOTS
    }),
    { round: 1 }
  ]
}

/** Asks until every question has an answer. */
function asksOnce([questions, kept]: Rounds): ToolHandler {
  return (args, { client }) => {
    const asked = questions(args)
    const answers = answersTo(asked, client)
    if (answers === null) return Promise.resolve(askClient(asked, kept))
    const isKept = JSON.stringify(client.state) === JSON.stringify(kept)
    return Promise.resolve(text(`${isKept ? 'state-ok' : 'state lost'}: ${JSON.stringify(answers)}`))
  }
}

function answersTo(
  asked: Readonly<Record<string, ClientRequest>>,
  client: ClientSide
): Readonly<Record<string, ClientAnswer>> | null {
  const answers: Record<string, ClientAnswer> = {}
  for (const name of Object.keys(asked)) {
    const answer = client.answer(name)
    if (answer === undefined) return null
    answers[name] = answer
  }
  return answers
}

/** Two rounds; what was said in the first is kept for the end. */
const inRounds: ToolHandler = (_args, { client }) => {
  const named = (client.state as { readonly named?: unknown } | undefined)?.named ?? client.answer('step1')
  if (named === undefined) return Promise.resolve(askClient({ step1: form('Step 1: What is your name?', NAME) }, {}))
  const liked = client.answer('step2')
  const color = form('Step 2: What is your favorite color?', { color: { type: 'string' } })
  if (liked === undefined) return Promise.resolve(askClient({ step2: color }, { named }))
  return Promise.resolve(text(JSON.stringify([named, liked])))
}

/** Asks only what its client takes. */
const asksWhatIsTaken: ToolHandler = (_args, { client }) => {
  const all = { name: form('What is your name?', NAME), greeting: sampling('Generate a greeting'), client_roots: ROOTS }
  const taken = Object.fromEntries(Object.entries(all).filter(([, request]) => client.takes(request)))
  const answers = answersTo(taken, client)
  return Promise.resolve(answers === null ? askClient(taken) : text(JSON.stringify(answers)))
}

function text(said: string): unknown {
  return mcpContent({ content: [{ type: 'text', text: said }] })
}

/** Tools that ask their client, by the names that the official runner has for them. */
export function askingTools(): Readonly<Record<string, ToolHandler>> {
  return {
    ...Object.fromEntries(Object.entries(ONCE).map(([name, rounds]) => [name, asksOnce(rounds)])),
    test_input_required_result_multi_round: inRounds,
    test_input_required_result_capabilities: asksWhatIsTaken
  }
}
