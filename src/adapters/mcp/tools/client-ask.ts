import {
  inputResponse,
  type ClientCapabilities,
  type InputRequest,
  type InputResponseView
} from '@modelcontextprotocol/server'
import { kindOf, type QuestionKind } from '../../../domain/task/question.js'
import { NodeError } from '../../../kit/errors.js'
import { kindsOf } from '../imported/client-kinds.js'

/** Questions of one {@link askClient}. */
const MAX_REQUESTS = 8
/** Characters of a handler's state between two rounds, as JSON: the client carries it. */
const MAX_STATE = 16_384

/**
 * A question to the client: to its person (`elicitation/create`), its model (`sampling/createMessage`), for its folders
 * (`roots/list`).
 */
export type ClientRequest = InputRequest

/** A client's answer to a question. It is not checked against the question. */
export type ClientAnswer = Exclude<InputResponseView, { readonly kind: 'missing' }>

/** The client of a tool's or a prompt's handler, to be asked questions. */
export interface ClientSide {
  /** Has it declared that it takes such a question? One that it does not take fails the call. */
  takes(request: ClientRequest): boolean
  /** Its answer to the question of this name; undefined when there is none yet, or none of a valid form. */
  answer(name: string): ClientAnswer | undefined
  /** Kinds of questions that it takes. */
  readonly kinds: readonly QuestionKind[]
  /** Asks it during this request; absent for one that is asked by a result. Rejects without an answer. */
  readonly ask?: (request: ClientRequest) => Promise<Readonly<Record<string, unknown>>>
  /** The `state` given to {@link askClient}, unchanged; undefined in the first round. */
  readonly state: unknown
}

/** The result of a handler that needs answers of its client. Made by {@link askClient}. */
export class ClientAsk {
  readonly requests: Readonly<Record<string, ClientRequest>>
  readonly state: unknown

  constructor(requests: Readonly<Record<string, ClientRequest>>, state: unknown) {
    this.requests = requests
    this.state = state
  }
}

/**
 * Asks the client, by names of the handler's choice. A handler that returns it is called again, with the same arguments
 * and the client's answers. Between the two calls nothing of it runs; `state` (JSON) comes back as it was, and the
 * client can read it.
 * @throws NodeError INVALID_INPUT without a question, for too many, and for a state that is too large
 */
export function askClient(requests: Readonly<Record<string, ClientRequest>>, state?: unknown): ClientAsk {
  const count = Object.keys(requests).length
  if (count === 0 || count > MAX_REQUESTS)
    throw new NodeError('INVALID_INPUT', `a client is asked 1 to ${MAX_REQUESTS} questions at once`)
  if (state !== undefined && JSON.stringify(state).length > MAX_STATE) {
    throw new NodeError(
      'INVALID_INPUT',
      `what is kept between two rounds is larger than ${MAX_STATE} characters of JSON`
    )
  }
  return new ClientAsk(requests, state)
}

const SAMPLING = { messages: [], maxTokens: 1 }
/** A question of each kind. */
const SAMPLES: Readonly<Record<QuestionKind, ClientRequest>> = {
  form: { method: 'elicitation/create', params: { message: '', requestedSchema: { type: 'object', properties: {} } } },
  url: { method: 'elicitation/create', params: { mode: 'url', message: '', url: '', elicitationId: '' } },
  sampling: { method: 'sampling/createMessage', params: SAMPLING },
  tools: { method: 'sampling/createMessage', params: { ...SAMPLING, tools: [] } },
  roots: { method: 'roots/list', params: {} }
}

/** Questions of kinds that the client does not take: the runtime refuses them by the error of the protocol. */
export function refusedAsk(kinds: readonly QuestionKind[]): ClientAsk {
  return askClient(Object.fromEntries(kinds.map((kind) => [kind, SAMPLES[kind]])))
}

/** A client that takes no question. */
export const NO_CLIENT: ClientSide = { takes: () => false, kinds: [], answer: () => undefined, state: undefined }

/** The client with its declared capabilities and its answers of this round. */
export function clientSide(
  declared: ClientCapabilities | undefined,
  {
    answers,
    state,
    ask
  }: Pick<ClientSide, 'ask' | 'state'> & { readonly answers: Readonly<Record<string, unknown>> | undefined }
): ClientSide {
  const kinds = kindsOf(declared)
  return {
    takes: ({ method, params = {} }) => kinds.includes(kindOf({ method, params: { ...params } })),
    kinds,
    answer: (name) => {
      if (answers === undefined || !Object.hasOwn(answers, name)) return undefined
      const view = inputResponse(answers, name)
      return view.kind === 'missing' ? undefined : view
    },
    ...(ask === undefined ? {} : { ask }),
    state
  }
}
