import { NodeError } from '../../kit/errors.js'
import type { CompileSchema } from '../../kit/sign.js'
import { isRecord } from '../../kit/json.js'
import { previewOf } from '../../kit/preview.js'
import { shown } from '../../kit/text.js'
import { type AgentAddress, OPERATOR } from '../../domain/card/card.js'
import { tierText } from '../../domain/routing/tier.js'
import {
  formFault,
  kindOf,
  type Severity,
  type AgentLogLine,
  type Question,
  type QuestionAnswer,
  type QuestionKind
} from '../../domain/task/question.js'
import type { Calls, Principal } from '../../ports/node-api.js'
import type { ApprovalDetail, ApprovalInfo, CallQuestion } from '../../ports/policy-api.js'
import type { AskedQuestion, PendingQuestion } from '../policy/pending-questions.js'
import type { QuestionListener } from '../requests/caller/questions.js'
import type { Services } from '../services.js'
import { ownerOf } from './principal.js'

/** Kinds of questions that the owner of this node answers where the client of a call does not. */
const BY_OWNER: readonly QuestionKind[] = ['form', 'url']
/** Kinds that an agent of a guest may ask: a model or folders are for machines of this node's person. */
const BY_GUESTS: ReadonlySet<QuestionKind> = new Set(BY_OWNER)
/** Characters of a line of a question. */
const MAX_LINE = 1024
/** Characters of a form in `approvals ls`. */
const FORM_SHOWN = 1024

/** Dependencies of the questions of calls. */
export type CallQuestionsDeps = Pick<Services, 'directory' | 'guests' | 'questions' | 'self'>

/** Abilities of the client of a call, and its hooks. */
export interface CallClient {
  readonly takes?: readonly QuestionKind[]
  readonly logLevel?: Severity
  /** Absent: it follows nothing, so the owner of this node answers. */
  readonly hooks?: {
    onQuestion(question: CallQuestion): void
    onLog(line: AgentLogLine, agent: string): void
    /** A question waits for the owner of this node. */
    onOwner(id: string, agent: string): void
  }
}

/** A call that may be asked. */
interface AskableCall {
  readonly target: AgentAddress
  readonly capability: string | null
  readonly timeoutMs: number
  readonly owner: string
}

/** Passes the questions of one call to its client, or else to the owner of this node. */
export class CallQuestions implements QuestionListener {
  readonly takes: readonly QuestionKind[]
  readonly logLevel: Severity | null
  readonly #node: CallQuestionsDeps
  readonly #client: CallClient
  readonly #call: AskableCall
  readonly #open = new Set<AskedQuestion>()

  constructor(node: CallQuestionsDeps, client: CallClient, call: AskableCall) {
    const isGuest = node.guests.has(call.target.nodeId)
    const given = client.hooks === undefined ? [] : (client.takes ?? [])
    this.takes = [...new Set([...given, ...BY_OWNER])].filter((kind) => !isGuest || BY_GUESTS.has(kind))
    this.logLevel = client.hooks === undefined ? null : (client.logLevel ?? null)
    this.#node = node
    this.#client = client
    this.#call = call
  }

  async onQuestion(asked: Question): Promise<QuestionAnswer> {
    const { hooks, takes = [] } = this.#client
    const { target: agent, capability, timeoutMs, owner } = this.#call
    const address = this.#node.directory.shownAddress(agent)
    const question = namedQuestion(asked, address)
    const isByClient = hooks !== undefined && takes.includes(kindOf(question))
    const listed = this.#node.questions.add(
      { question, agent, capability, owner: isByClient ? owner : null },
      timeoutMs
    )
    if (listed === null) return { ok: false, message: 'too many questions wait at the node of the caller' }
    this.#open.add(listed)
    if (isByClient) hooks.onQuestion({ id: listed.id, agent: address, ...question })
    else hooks?.onOwner(listed.id, address)
    return await listed.answer.finally(() => this.#open.delete(listed))
  }

  onLog(line: AgentLogLine): void {
    const { target } = this.#call
    this.#client.hooks?.onLog(line, this.#node.directory.shownAddress(target))
  }

  /** The call has ended. */
  close(): void {
    for (const listed of this.#open) listed.close()
  }
}

/** The question with a text that is safe to show and names the agent. */
function namedQuestion(question: Question, agent: string): Question {
  const { params } = question
  const { message } = params
  if (typeof message !== 'string') return question
  const lines = message.split(/\r?\n/).map((line) => shown(line, MAX_LINE))
  return { ...question, params: { ...params, message: `${agent}: ${lines.join('\n')}` } }
}

/** `message.answer`. @throws NodeError APPROVAL_NOT_FOUND for a question that does not wait for this caller */
export function answerCall(
  { questions }: CallQuestionsDeps,
  { id, answer }: Calls['message.answer']['params'],
  principal: Principal
): { readonly id: string } {
  questions.answer(id, ownerOf(principal), answer)
  return { id }
}

/** The row of a question in `approvals ls`. */
export function questionInfo(node: CallQuestionsDeps, one: PendingQuestion): ApprovalInfo {
  const { id, agent, capability, question, askedAt, expiresAt } = one
  const { directory, self } = node
  const { message, ...rest } = question.params
  const input = previewOf(rest, FORM_SHOWN)
  const text = String(message)
  const tier = directory.party(agent)?.tier ?? directory.card(agent)?.tier
  return {
    id,
    from: shown(directory.shownAddress(agent)),
    fromNode: directory.ref(agent.nodeId),
    to: shown(directory.shownAddress({ agentId: OPERATOR, nodeId: self })),
    toNode: directory.ref(self),
    fromTier: tierText(tier ?? 3),
    type: 'request',
    capability: capability === null ? null : shown(capability, 128),
    sideEffect: null,
    description: shown(text),
    justification: null,
    input: shown(input, FORM_SHOWN + 1),
    cut: [
      ...(input.endsWith('…') ? (['input'] as const) : []),
      ...(shown(text).endsWith('…') ? (['description'] as const) : [])
    ],
    rule: 'question: no client of the caller answers it',
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    endsBy: 'caller',
    question: kindOf(question) === 'url' ? 'url' : 'form'
  }
}

/** `approvals show` of a question. @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME */
export function showQuestion(node: CallQuestionsDeps, text: string): ApprovalDetail {
  const one = node.questions.get(text)
  const { message, ...input } = one.question.params
  return {
    ...questionInfo(node, one),
    requestId: null,
    attempt: null,
    copies: 1,
    whole: { description: String(message), justification: null, input }
  }
}

/**
 * Answers a question as the owner of this node.
 * @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME; USAGE to remember it; INVALID_INPUT for content that is absent
 * or does not fit the form
 */
export function answerQuestion(
  node: CallQuestionsDeps & { readonly deps: { readonly compileSchema: CompileSchema } },
  decision: 'allow' | 'deny',
  { id, content, remember = false }: Calls['approvals.allow']['params']
): ApprovalInfo {
  if (remember) throw new NodeError('USAGE', 'an answer to a question cannot be remembered')
  const one = node.questions.get(id)
  const info = questionInfo(node, one)
  if (decision === 'deny') node.questions.answer(one.id, null, { ok: true, result: { action: 'decline' } })
  else node.questions.answer(one.id, null, { ok: true, result: accepted(node.deps.compileSchema, one, content) })
  return info
}

function accepted(compileSchema: CompileSchema, { id, question }: PendingQuestion, content: unknown): object {
  if (kindOf(question) === 'url') return { action: 'accept' }
  if (!isRecord(content))
    throw new NodeError('INVALID_INPUT', 'the question asks for content: an object of JSON', {
      next: [`a2a-node approvals show ${id}`, `a2a-node approvals allow ${id} --content '<json>'`]
    })
  const fault = formFault(compileSchema, question.params['requestedSchema'], content)
  if (fault !== null) throw new NodeError('INVALID_INPUT', fault)
  return { action: 'accept', content }
}
