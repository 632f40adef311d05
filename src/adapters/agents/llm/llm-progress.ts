import { BYTES_PER_TOKEN } from '../../../kit/size.js'

/** Tokens of one or more questions to a model and its answers. */
export interface TokenCounts {
  readonly input: number
  readonly output: number
  /** The server did not say all of it. */
  readonly isEstimated: boolean
}

/** Progress of a run. */
export interface RunProgress {
  readonly turns: number
  readonly tokens: TokenCounts
}

/** Limits of one run. */
export interface ProgressLimits {
  readonly maxTurns: number
  /** Tokens of one answer. */
  readonly maxTokens: number
  /** Tokens of the run. */
  readonly run: number
}

/** The next step: a question whose answer has at most `maxTokens`, or the end of the run with its reason. */
export type NextTurn =
  | { readonly kind: 'ask'; readonly maxTokens: number }
  | { readonly kind: 'over'; readonly why: 'turns' | 'run' | 'day' }

/** Token counts of one turn, as the server reported them. */
export interface ReportedTokens {
  readonly input: number | undefined
  readonly output: number | undefined
}

/** Text of one turn, in bytes of UTF-8. */
export interface MovedBytes {
  readonly sent: number
  readonly received: number
}

/** No model uses more; a server that reports more for one turn has used up any budget. */
const MOST_TOKENS = 1_000_000_000_000

/** A run that has not begun. */
export const PROGRESS_START: RunProgress = { turns: 0, tokens: { input: 0, output: 0, isEstimated: false } }

/**
 * Decides on the next turn. `dayLeft`: the agent's tokens left for the day. A begun turn counts whole, so a run may
 * exceed its budget by a turn.
 */
export function nextTurn(
  { turns, tokens }: RunProgress,
  { maxTurns, maxTokens, run }: ProgressLimits,
  dayLeft: number
): NextTurn {
  const left = run - sumOf(tokens)
  if (turns >= maxTurns) return { kind: 'over', why: 'turns' }
  if (left <= 0) return { kind: 'over', why: 'run' }
  if (dayLeft <= 0) return { kind: 'over', why: 'day' }
  return { kind: 'ask', maxTokens: Math.min(maxTokens, left, dayLeft) }
}

/** The progress after one more turn. */
export function afterTurn({ turns, tokens }: RunProgress, turn: TokenCounts): RunProgress {
  return {
    turns: turns + 1,
    tokens: {
      input: tokens.input + turn.input,
      output: tokens.output + turn.output,
      isEstimated: tokens.isEstimated || turn.isEstimated
    }
  }
}

/**
 * Tokens of one turn: the server's counts, or else an estimate from the text. All counts 0: the server reported
 * nothing.
 */
export function tokensOf({ input, output }: ReportedTokens, { sent, received }: MovedBytes): TokenCounts {
  const isReported = (input ?? 0) > 0 || (output ?? 0) > 0
  const [asked, answered] = [isReported ? counted(input) : null, isReported ? counted(output) : null]
  return {
    input: asked ?? Math.ceil(sent / BYTES_PER_TOKEN),
    output: answered ?? Math.ceil(received / BYTES_PER_TOKEN),
    isEstimated: asked === null || answered === null
  }
}

/** Both ways together. */
export function sumOf({ input, output }: TokenCounts): number {
  return input + output
}

function counted(value: number | undefined): number | null {
  return value !== undefined && Number.isInteger(value) && value >= 0 ? Math.min(value, MOST_TOKENS) : null
}
