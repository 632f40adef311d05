import type { ModelMessage } from 'ai'
import { asNodeError, messageOf } from '../../../kit/errors.js'
import { BYTES_PER_TOKEN } from '../../../kit/size.js'
import { shown } from '../../../kit/text.js'
import type { AgentOutcome, AgentTask } from '../../../ports/agent-runtime.js'
import type { AgentToolbox } from '../../../ports/agent-tools.js'
import { failure, type RuntimeContext } from '../files/hosted-agent.js'
import { afterTurn, type RunProgress, PROGRESS_START, nextTurn, type NextTurn, sumOf } from './llm-progress.js'
import { faultOutcome } from './llm-fault.js'
import { type LlmDeps, type LlmProvider, MAX_TOOLS } from './llm-parts.js'
import { answerOf, promptMessages, systemPrompt } from './llm-prompt.js'
import { usableProvider } from './llm-provider.js'
import type { LlmRuntimeDeps } from './llm-runtime.js'
import { TokenReports } from './llm-token-reports.js'
import { askModel, type Turn, type TurnCall, type TurnDeps } from './llm-turn.js'

/** Tools that one answer of a model may call; further calls are refused. */
const MAX_CALLS = 16
/** Characters of a tool's result that a model is given; the rest is cut off. */
const MAX_RESULT = 32_768

/** A history takes at most one of this number of parts of the tokens of a run, which pays for it in each turn. */
const HISTORY_SHARE = 4

const NO_TOOLS: AgentToolbox = { tools: [], left: 0, call: () => Promise.reject(new Error('there are no tools')) }

type RunDeps = LlmRuntimeDeps & { readonly llm: LlmDeps }

/** Runs one task of an agent of a language model. */
export async function runModel(deps: RunDeps, task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
  const { spec, llm, definition, log } = deps
  const warn = (message: string, error: unknown): void =>
    log('warn', message, { agent: definition.id, provider: spec.provider, reason: messageOf(error) })
  const usable = await usableProvider(llm, spec, (error) => warn('an LLM provider cannot be used', error))
  if (!usable.ok) return failure('LLM_INIT_FAILED', usable.reason)
  const { provider, model } = usable
  let toolbox: AgentToolbox
  try {
    toolbox = await toolboxOf(deps, context.signal)
  } catch (error) {
    warn('an agent got no tools', error)
    return failure('TASK_FAILED', `the tools of the agent could not be looked up: ${asNodeError(error).message}`)
  }
  return await new LlmRun(deps, { task, context, provider, model, toolbox }).go()
}

async function toolboxOf({ spec, llm, definition, log }: RunDeps, signal: AbortSignal): Promise<AgentToolbox> {
  if (spec.tools.length === 0 || llm.tools === null) return NO_TOOLS
  // A tool may be a model too: it may take as long as the agent itself.
  const choice = { globs: spec.tools, max: MAX_TOOLS, timeoutMs: definition.limits.timeoutMs }
  const toolbox = await llm.tools.open(definition.id, choice, signal)
  if (toolbox.left > 0)
    log('warn', 'an agent was not given all of its tools', { agent: definition.id, left: toolbox.left })
  return toolbox
}

interface RunOpening {
  readonly task: AgentTask
  readonly context: RuntimeContext
  readonly provider: LlmProvider
  readonly model: string
  readonly toolbox: AgentToolbox
}

/** One conversation with a model, from the question to the answer. */
class LlmRun {
  readonly #deps: RunDeps
  readonly #opening: RunOpening
  readonly #reports: TokenReports
  readonly #messages: ModelMessage[]
  #progress: RunProgress = PROGRESS_START
  #hasActed = false

  constructor(deps: RunDeps, opening: RunOpening) {
    this.#deps = deps
    this.#opening = opening
    this.#reports = new TokenReports(deps.clock, (data) => opening.context.progress(data))
    this.#messages = [...promptMessages(opening.task, (deps.spec.budget.run * BYTES_PER_TOKEN) / HISTORY_SHARE)]
  }

  async go(): Promise<AgentOutcome> {
    const { definition, spec, llm } = this.#deps
    const turnParts = this.#turnParts()
    const limits = { maxTurns: spec.maxTurns, maxTokens: spec.maxTokens, run: spec.budget.run }
    await llm.days.ready()
    for (;;) {
      const next = nextTurn(this.#progress, limits, llm.days.left(definition.id, spec.budget.day))
      if (next.kind === 'over') return this.#over(next.why)
      const asked = await askModel(turnParts, this.#messages, next)
      this.#reports.flush()
      await llm.days.spend(definition.id, sumOf(asked.tokens))
      const isBegun = this.#progress.turns > 0
      this.#progress = afterTurn(this.#progress, asked.tokens)
      if (turnParts.signal.aborted) return failure('CANCELED', 'canceled')
      if (!asked.ok) {
        const { fault } = asked
        this.#deps.log('warn', 'an LLM provider failed', {
          agent: definition.id,
          provider: spec.provider,
          reason: fault.message
        })
        return faultOutcome(fault, { provider: spec.provider, isBegun, hasActed: this.#hasActed })
      }
      if (asked.turn.calls.length === 0) return this.#finished(asked.turn)
      await this.#act(asked.turn, turnParts.signal)
    }
  }

  #turnParts(): TurnDeps {
    const { definition, instructions, clock, llm } = this.#deps
    const { task, context, provider, model, toolbox } = this.#opening
    return {
      provider,
      model,
      system: systemPrompt(definition, instructions, task.capability),
      tools: toolbox.tools,
      maxTextBytes: definition.limits.maxOutputBytes,
      clock,
      fetch: llm.fetch,
      signal: context.signal,
      onText: (text) => this.#reports.push(text, this.#progress.turns + 1)
    }
  }

  #over(why: Extract<NextTurn, { kind: 'over' }>['why']): AgentOutcome {
    const { definition, spec, llm } = this.#deps
    const reported = {
      turns: `no answer within ${spec.maxTurns} turns`,
      run: `no answer within ${spec.budget.run} tokens`
    }
    if (why !== 'day')
      return { ok: false, code: 'TASK_FAILED', message: reported[why], retryable: false, data: this.#usage() }
    return {
      ok: false,
      code: 'TASK_FAILED',
      message: `the agent ${definition.id} has used its ${spec.budget.day} tokens of today`,
      retryable: !this.#hasActed,
      data: { ...this.#usage(), retryAfter: llm.days.untilNextDay() }
    }
  }

  #finished({ text, finish }: Turn): AgentOutcome {
    const { spec, definition } = this.#deps
    this.#opening.context.progress(this.#usage())
    if (finish === 'length')
      return failure('TASK_FAILED', `the answer of the model was cut off: it may have ${spec.maxTokens} tokens`)
    if (finish === 'content-filter')
      return failure('TASK_FAILED', 'the model, or a filter before it, refuses to answer')
    if (finish === 'refusal') return failure('TASK_FAILED', `the model refuses to answer: ${shown(text)}`)
    if (finish === 'tool-calls' && text === '') return failure('TASK_FAILED', 'the model wanted a tool, and named none')
    if (text.trim() === '') return { ...failure('TASK_FAILED', 'the model gave no answer'), retryable: !this.#hasActed }
    return answerOf(
      text,
      definition.capabilities.find(({ id }) => id === this.#opening.task.capability)
    )
  }

  #usage(): Readonly<Record<string, unknown>> {
    const { turns, tokens } = this.#progress
    return { usage: { turns, inputTokens: tokens.input, outputTokens: tokens.output, isEstimated: tokens.isEstimated } }
  }

  /** Runs the model's tool calls, all at once, and appends its text and the results to the conversation. */
  async #act({ text, calls }: Turn, signal: AbortSignal): Promise<void> {
    this.#hasActed = true
    const results = await Promise.all(calls.map((call, at) => this.#call(call, at, signal)))
    const words = text === '' ? [] : [{ type: 'text' as const, text }]
    const asked = calls.map(({ id, name, args }) => ({
      type: 'tool-call' as const,
      toolCallId: id,
      toolName: name,
      input: args
    }))
    const answered = calls.map(({ id, name }, at) => ({
      type: 'tool-result' as const,
      toolCallId: id,
      toolName: name,
      output: results[at] ?? { type: 'text' as const, value: '' }
    }))
    this.#messages.push({ role: 'assistant', content: [...words, ...asked] }, { role: 'tool', content: answered })
  }

  async #call(
    { name, args, fault }: TurnCall,
    at: number,
    signal: AbortSignal
  ): Promise<{ readonly type: 'text' | 'error-text'; readonly value: string }> {
    const { definition, log } = this.#deps
    if (at >= MAX_CALLS) return { type: 'error-text', value: `OVERLOADED: at most ${MAX_CALLS} tools at once` }
    if (fault !== null) return { type: 'error-text', value: `INVALID_INPUT: ${fault}` }
    try {
      const result = await this.#opening.toolbox.call(name, args, signal)
      return { type: 'text', value: cut(typeof result === 'string' ? result : JSON.stringify(result ?? null)) }
    } catch (error) {
      const { code, message } = asNodeError(error)
      log('debug', 'a tool of an agent failed', { agent: definition.id, tool: name, code, reason: message })
      return { type: 'error-text', value: cut(`${code}: ${message}`) }
    }
  }
}

function cut(text: string): string {
  return text.length <= MAX_RESULT ? text : `${text.slice(0, MAX_RESULT)}… (cut off: ${text.length} characters)`
}
