import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { ToolOutcome } from '../../../ports/tool-calls.js'
import { publishedAs } from '../tools/published-names.js'
import { NO_CLIENT, type ClientAsk, type ClientSide } from '../tools/client-ask.js'
import { Deadlines } from './deadlines.js'
import type { ResourceManager } from '../resources/resource-limits.js'
import type { ReleaseSlot } from '../resources/slot-queue.js'
import { errorFor } from './remote-client.js'
import type { RunIds } from './run-ids.js'
import { RunSignal } from './run-signal.js'
import { refusalOf, structuredErrorOf, type StructuredError } from './structured-error.js'
import type { Severity, AgentLogLine } from '../../../domain/task/question.js'
import type { ClientLines, RegisteredTool, ToolContext, ToolLog } from './tool.js'
import type { ToolCatalog } from './tool-catalog.js'
import { type OnCompleted, recordOf, tellRecord } from './tool-record.js'
import { wrapError, wrapResult, type WrappedResult } from './tool-result.js'

/** One `tools/call` whose shape is right. */
export interface ToolCall {
  /** Canonical or published. */
  readonly name: string
  /** JSON; absent counts as `{}`. */
  readonly args: Readonly<Record<string, unknown>>
  /** As the client named it. */
  readonly correlationId: string | null
  /** Aborts when the client cancels and when the connection ends: the result is then unused. */
  readonly signal: AbortSignal
  readonly progress: ToolContext['progress']
  /** Takes log lines for the client; absent or null when it asked for none. */
  readonly lines?: ClientLines | null
  /** Access of the handler to its client; absent: it cannot ask. */
  readonly client?: ClientSide
}

/** How a call is answered: at last, or with questions to its client. */
export type ToolAnswer = CallToolResult | ClientAsk

/** Levels of the protocol. */
const LEVEL_OF = { debug: 'debug', info: 'info', warn: 'warning', error: 'error' } as const satisfies Readonly<
  Record<Parameters<ToolLog>[0], Severity>
>

/** Dependencies of {@link ToolPipeline}. */
export interface PipelineDeps {
  readonly clock: Clock
  readonly ids: Pick<RunIds, 'runId' | 'correlationId'>
  readonly log: ToolLog
  readonly tools: ToolCatalog
  readonly limits: ResourceManager
  /** Of tools that name none. */
  readonly defaultTimeoutMs: number
  /** The client has no command line of this node. Default false. */
  readonly isRemote?: boolean
  /** Called when a call was answered, and again when its handler ended after that. */
  readonly onCompleted?: OnCompleted | undefined
}

/** A call with its ids, its start and its tool. */
interface ToolRunner {
  readonly call: ToolCall
  readonly runId: string
  readonly correlationId: string
  readonly startedMs: number
  /** Canonical name; null for a tool that does not exist. */
  tool: string | null
}

/** Gives back the slot of a tool that needs none. */
const NO_SLOT: ReleaseSlot = () => {}

/** Runs calls of tools in the order of the specification (mcp-runtime, Processing Order, steps 3 to 10). */
export class ToolPipeline {
  readonly #deps: PipelineDeps
  readonly #deadlines: Deadlines

  constructor(deps: PipelineDeps) {
    this.#deps = deps
    this.#deadlines = new Deadlines(deps.clock)
  }

  /** Answers a call. Never rejects: an error is a result with `isError`. */
  async call(call: ToolCall): Promise<ToolAnswer> {
    const { ids, clock, tools, limits } = this.#deps
    const correlationId = call.correlationId ?? ids.correlationId()
    const run: ToolRunner = { call, runId: ids.runId(), correlationId, startedMs: clock.monotonic(), tool: null }
    try {
      const found = tools.find(call.name)
      const tool = found instanceof Promise ? await found : found
      run.tool = tool?.definition.name ?? null
      const size = limits.validatePayloadSize(call.args)
      if (!size.valid)
        return this.#refuse(run, refusalOf('PAYLOAD_TOO_LARGE', `the input ${size.errors[0]?.message ?? 'too large'}`))
      if (tool === undefined) return this.#refuse(run, await this.#unknown(call.name))
      const free = tool.needsSlot === false ? NO_SLOT : limits.tryAcquireSlot()
      const release = free ?? (await limits.acquireSlot({ client: this, signal: call.signal }))
      if (release === null || (free === null && call.signal.aborted)) return this.#withoutSlot(run, release)
      return await this.#checked(run, tool, release)
    } catch (error) {
      return this.#refuse(run, structuredErrorOf(error))
    }
  }

  async #unknown(name: string): Promise<StructuredError> {
    const hint = await this.#deps.tools.hint(name)
    return refusalOf(
      'CAPABILITY_NOT_FOUND',
      `there is no tool ${JSON.stringify(name.slice(0, 256))}; tools/list says what there is`,
      hint
    )
  }

  /** The call was canceled in the queue for a slot, perhaps right after it got one, or found the queue full. */
  #withoutSlot(run: ToolRunner, unused: ReleaseSlot | null): CallToolResult {
    unused?.()
    if (run.call.signal.aborted)
      return this.#fail(run, refusalOf('CANCELED', 'canceled while it waited for a slot'), 'aborted')
    const { waitingExecutions } = this.#deps.limits
    const { maxConcurrentExecutions } = this.#deps.limits.getTelemetry()
    const text = `${maxConcurrentExecutions} calls run and ${waitingExecutions} wait already; try again when some have ended`
    return this.#refuse(
      run,
      refusalOf('OVERLOADED', text, { reason: 'concurrency', maxConcurrentExecutions, waitingExecutions })
    )
  }

  /** A handler that runs keeps its slot until it ends, however late, or its caller cancels. */
  #checked(run: ToolRunner, tool: RegisteredTool, release: ReleaseSlot): ToolAnswer | Promise<ToolAnswer> {
    try {
      const [first, ...others] = tool.validator(run.call.args)
      if (first === undefined) return this.#execute(run, tool, release)
      release()
      const faults = [first, ...others]
      return this.#refuse(
        run,
        refusalOf('INVALID_INPUT', `the arguments do not fit: ${`${first.path} ${first.message}`.trim()}`, { faults })
      )
    } catch (error) {
      release()
      throw error
    }
  }

  /** Resolves when the handler ends or at the deadline, whichever is first. */
  #execute(run: ToolRunner, tool: RegisteredTool, release: ReleaseSlot): Promise<ToolAnswer> {
    const { defaultTimeoutMs } = this.#deps
    const { signal } = run.call
    const own = new RunSignal(signal)
    let isLate = false
    let isOver = false
    const context = this.#contextOf(run, own, () => !isOver && !isLate)
    const slot = this.#slotUntilCanceled(signal, release)
    return new Promise((resolve) => {
      const timeoutMs = tool.timeoutMs === undefined ? defaultTimeoutMs : tool.timeoutMs
      const deadline =
        timeoutMs === null
          ? null
          : this.#deadlines.after(timeoutMs, () => {
              isLate = true
              own.abort(new NodeError('TIMEOUT', `not done within ${timeoutMs} ms`))
              resolve(
                this.#fail(
                  run,
                  refusalOf('TIMEOUT', `not done within ${timeoutMs} ms; it may still run`, { timeoutMs }),
                  'timeout'
                )
              )
            })
      const end = (ended: WrappedResult | StructuredError): void => {
        isOver = true
        deadline?.clear()
        own.release()
        slot.release()
        resolve(this.#ended(run, ended, { isLate, isAlone: signal.aborted }))
      }
      void invoke(tool, run.call.args, context).then(end)
    })
  }

  /** The slot of a canceled call is free at once. */
  #slotUntilCanceled(signal: AbortSignal, release: ReleaseSlot): { release(): void } {
    if (release === NO_SLOT) return { release }
    let current = release
    const abandon = (): void => {
      current = this.#deps.limits.abandonSlot(release)
    }
    if (signal.aborted) abandon()
    else signal.addEventListener('abort', abandon, { once: true })
    return {
      release: () => {
        signal.removeEventListener('abort', abandon)
        current()
      }
    }
  }

  #contextOf(run: ToolRunner, own: RunSignal, isOpen: () => boolean): ToolContext {
    const { runId, correlationId, call } = run
    const given = call.lines ?? null
    const lines =
      given === null ? null : { ...given, send: (line: AgentLogLine) => (isOpen() ? given.send(line) : undefined) }
    return {
      runId,
      correlationId,
      get abortSignal() {
        return own.signal
      },
      client: call.client ?? NO_CLIENT,
      lines,
      log: (level, message, fields) => {
        this.#deps.log(level, message, { ...fields, tool: run.tool ?? shown(call.name), runId, correlationId })
        lines?.send({ level: LEVEL_OF[level], data: message })
      },
      progress: (report) => {
        if (isOpen()) call.progress(report)
      }
    }
  }

  /** The handler ended: in time, late, or without a waiting client. Only the first is answered. */
  #ended(
    run: ToolRunner,
    ended: WrappedResult | StructuredError,
    { isLate, isAlone }: { isLate: boolean; isAlone: boolean }
  ): ToolAnswer {
    const error = 'code' in ended ? ended : ended.error
    const hasThrown = 'code' in ended && ended.details?.['reason'] !== 'result_not_serializable'
    const gone: ToolOutcome = hasThrown ? 'aborted' : 'disconnected_completed'
    const outcome = isLate ? 'late_completed' : isAlone ? gone : error === null ? 'success' : 'tool_error'
    if ('code' in ended) return this.#fail(run, ended, outcome)
    this.#report(run, { outcome, error, json: ended.json })
    return ended.result
  }

  #refuse(run: ToolRunner, error: StructuredError): CallToolResult {
    return this.#fail(run, error, 'tool_error')
  }

  #fail(run: ToolRunner, error: StructuredError, outcome: ToolOutcome): CallToolResult {
    const { runId, correlationId } = run
    const full: StructuredError = { ...errorFor(error, this.#deps), runId, correlationId }
    this.#report(run, { outcome, error: full, json: null })
    return wrapError(full)
  }

  #report(
    run: ToolRunner,
    { outcome, error, json }: { outcome: ToolOutcome; error: StructuredError | null; json: string | null }
  ): void {
    const { clock, limits, log, onCompleted } = this.#deps
    const { runId, correlationId, call } = run
    const tool = run.tool ?? shown(call.name)
    const durationMs = clock.monotonic() - run.startedMs
    if (outcome !== 'late_completed') limits.answered(error?.code ?? null)
    const about = { tool, runId, correlationId, outcome, durationMs }
    const level = outcome === 'success' ? 'debug' : outcome === 'late_completed' ? 'warn' : 'info'
    log(
      level,
      'tool call ended',
      error === null ? about : { ...about, error: { code: error.code, message: error.message } }
    )
    if (onCompleted === undefined) return
    const base = {
      ...about,
      arguments: call.args,
      at: clock.now(),
      ...(run.tool === null ? { isUnknown: true } : publishedAs(run.tool, call.name))
    }
    tellRecord({ onCompleted, log }, recordOf(base, { error, json }), json?.length ?? 0)
  }
}

async function invoke(
  tool: RegisteredTool,
  args: Readonly<Record<string, unknown>>,
  context: ToolContext
): Promise<WrappedResult | StructuredError> {
  try {
    return wrapResult(await tool.handler(args, context), tool.definition)
  } catch (error) {
    return structuredErrorOf(error)
  }
}
