import type { AbortSignalLike } from '../kit/clock.js'
import type { NodeId } from '../kit/ids.js'
import type { AgentProvider } from '../kit/names/provider.js'
import type { CapabilityDescriptor, CardBody } from '../domain/card/card.js'
import type { Conversation } from '../domain/gateway/conversation.js'
import type { Severity, AgentLogLine, Question, QuestionAnswer, QuestionKind } from '../domain/task/question.js'
import type { ToolContent } from '../domain/task/tool-content.js'
import type { Tier } from '../domain/routing/tier.js'

/** One piece of work for an agent. */
export interface AgentTask {
  readonly taskId: string
  readonly requestId: string
  /** 1 for the first try. */
  readonly attempt: number
  readonly capability: string
  /** The goal or reason, for people and language models; '' when there is none. */
  readonly description: string
  /** The swarm that it is part of, whose document has the same name; null: of none. */
  readonly swarm: string | null
  /** JSON (bytes of attachments already as base64 text), checked against the capability's schema. */
  readonly input: unknown
  /** The calling node: this node itself for local work; absent when unknown. */
  readonly peer?: NodeId
  /** Why a caller of a weaker tier asks, at most 1 KiB; absent when it gave no reason. */
  readonly justification?: string
  /** Of a client of the A2A gateway: the conversation that it is one turn of; absent for all other work. */
  readonly conversation?: Conversation
}

/**
 * Why a run has no result. FORBIDDEN: the agent lacks a grant that every task of it needs. LLM_INIT_FAILED: its
 * language model cannot be used; nothing was done.
 */
export type FailureCode =
  | 'TASK_FAILED'
  | 'LLM_INIT_FAILED'
  | 'FORBIDDEN'
  | 'TIMEOUT'
  | 'CANCELED'
  | 'INVALID_OUTPUT'
  | 'PAYLOAD_TOO_LARGE'

/** How one run ends: a value, never an exception. */
export type AgentOutcome =
  | {
      readonly ok: true
      readonly result: unknown
      /** The same in the form of MCP, for callers that ask for it. Absent: the result has no other form. */
      readonly content?: ToolContent
    }
  | {
      readonly ok: false
      readonly code: FailureCode
      readonly message: string
      /**
       * True: nothing was done, and the same may succeed later. False: it is never tried again. Absent: nothing is said
       * of either.
       */
      readonly retryable?: boolean
      /** Typed details for the caller, e.g. `retryAfter` in seconds: it is not tried again before. JSON. */
      readonly data?: unknown
      /** True: it is unknown whether the work was done. Absent: it failed. */
      readonly isUnknown?: boolean
      /** The failure in the form of MCP, for callers that ask for it. */
      readonly content?: ToolContent['content']
    }

/** The caller of a run, as far as it answers questions and takes log lines. */
export interface RunCaller {
  readonly takes: readonly QuestionKind[]
  /** Least level of the log lines that it wants; null: none. */
  readonly logLevel: Severity | null
  /**
   * Asks it. Never rejects; the end of the run ends its questions. The run holds no slot of its agent meanwhile, unless
   * too many runs ask. `isNeeded`: does other work wait for this run? Then an unanswered question ends after a minute.
   */
  ask(question: Question, isNeeded?: () => boolean): Promise<QuestionAnswer>
  /** Sends it a line, if it wants lines of the level and is not flooded. */
  log(line: AgentLogLine): void
}

/** Context of one run of an agent. */
export interface AgentRun {
  /** Abort ends the run: the process group is killed (SIGTERM, then SIGKILL). */
  readonly signal: AbortSignalLike
  /** Called for each progress report, in order, before the outcome. */
  progress(data: unknown): void
  /** Absent: it takes neither questions nor log lines. */
  readonly caller?: RunCaller | undefined
}

/** Could an agent take work now? `degraded`: maybe not all of it. */
export interface HealthFinding {
  readonly state: 'healthy' | 'degraded' | 'unhealthy'
  /** For people; null for a healthy one. */
  readonly reason: string | null
}

/** The last finding, and the time since when it holds, unix milliseconds. */
export interface AgentHealth extends HealthFinding {
  readonly since: number
}

/**
 * An agent as the node hosts it. `run` never rejects. It resolves only when the agent's work has really ended (its
 * process group is gone). The caller ensures that at most `limits.concurrency` runs overlap.
 */
export interface HostedAgent {
  readonly definition: AgentDefinition
  run(task: AgentTask, run: AgentRun): Promise<AgentOutcome>
  /** Looks whether it could take work, at a small and bounded cost; absent where nothing can be said of it. */
  check?(signal: AbortSignalLike): Promise<HealthFinding>
  /** Ends child processes and frees resources. Idempotent. */
  close(): Promise<void>
}

/** Limits of one agent. */
export interface AgentLimits {
  /** Milliseconds a run may take. Default 300,000. */
  readonly timeoutMs: number
  /** Runs at once. Default 1: strictly serial. */
  readonly concurrency: number
  /** Bytes of a result. Default 10 MiB. */
  readonly maxOutputBytes: number
}

/** A text with places for arguments that an agent offers to people and models: a prompt of MCP. */
export interface AgentPrompt {
  /** Unique in its agent. */
  readonly name: string
  readonly description: string
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[]
  /** `{name}` stands for the argument of that name; other braces are literal. */
  readonly template: string
}

/** The checked content of an agent file. */
export interface AgentDefinition {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly description: string
  /** A request; capped by the node's certificate. null: the certificate's. */
  readonly tier: Tier | null
  readonly sandboxId: string | null
  readonly protocols: CardBody['protocols']
  /** The organization that offers it. Absent: that of the node's settings. */
  readonly provider?: AgentProvider
  readonly capabilities: readonly CapabilityDescriptor[]
  /** None when absent. They are offered by this node alone; cards do not carry them. */
  readonly prompts?: readonly AgentPrompt[]
  readonly limits: AgentLimits
  /** It works for the operator of this node alone: other callers do not see it. */
  readonly isReserved?: true
  /** Runtime type, e.g. `command`, `module`, `starter`. */
  readonly runtime: string
  /** Where it comes from: a file path, or `built-in`. */
  readonly source: string
}

/** A file that could not be used. The last good version of the agent, if any, stays in service. */
export interface AgentFault {
  readonly file: string
  /** 1-based; null when the fault has no place. */
  readonly line: number | null
  readonly reason: string
}

/** Supplies the node's agents and reports changes. */
export interface AgentSource {
  /** Reads everything once. Faulty files are reported, not thrown. */
  load(): Promise<{ readonly agents: readonly HostedAgent[]; readonly faults: readonly AgentFault[] }>
  /**
   * Calls back with the whole new set at each change. Agents that did not change are the same objects. A promise of
   * `onChange` resolves when the set is in service, and never rejects.
   */
  watch(onChange: (agents: readonly HostedAgent[], faults: readonly AgentFault[]) => void | Promise<void>): void
  /** Stops watching and closes every agent. */
  close(): Promise<void>
}
