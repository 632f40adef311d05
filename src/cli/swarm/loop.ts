import type { SwarmRequest, SwarmResults } from '../../ports/swarm-api.js'
import { CHECK_OUTPUT_MAX, type Checked, runCheck } from '../check-command.js'
import type { CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { jsonLine, plainText, type Output } from '../terminal/output.js'
import { followOwnSwarm } from './follow.js'
import type { LaunchedStep } from './steps.js'

/** A check may take so long when its swarm names no deadline, in milliseconds. */
const CHECK_MS = 600_000
/** Characters of the goal that are left for it beside what the check says. */
const GOAL_MAX = 64 * 1024 - CHECK_OUTPUT_MAX - 256

/** A repeated swarm and its end condition. */
export interface Loop {
  readonly command: string
  readonly maxRounds: number
  /** The request of a round; later rounds get the output of the check. */
  requestOf(round: NonNullable<SwarmRequest['round']>): Promise<LaunchedStep>
  /** See {@link followOwnSwarm}; of each round. */
  readonly maxFailures: number | undefined
  /** Launches it; its id. */
  launch(launched: LaunchedStep): Promise<string>
}

interface LoopRound {
  readonly round: number
  readonly swarm: string
  readonly status: SwarmResults['status']
  readonly check: { readonly code: number | null; readonly output: string }
}

/** Repeats plan, run and check until the check passes: exit 0, or 1 when the rounds are used up, 130 after Ctrl-C. */
export async function runLoop(context: CommandContext, loop: Loop): Promise<number> {
  const rounds: LoopRound[] = []
  let check = ''
  for (let number = 1; number <= loop.maxRounds; number++) {
    const [first] = rounds
    const launched = await loop.requestOf({ number, check, ...(first === undefined ? {} : { first: first.swarm }) })
    const swarm = await loop.launch(launched)
    if (!context.output.json) context.output.note(`round ${number} of at most ${loop.maxRounds}: ${swarm}`)
    if ((await followOwnSwarm(context, swarm, { launched, maxFailures: loop.maxFailures })) === EXIT.interrupted)
      return EXIT.interrupted
    const { status, checked } = await checkOf(context, loop, {
      number,
      swarm,
      timeoutMs: launched.request.deadlineMs ?? CHECK_MS
    })
    if (checked.isInterrupted) return EXIT.interrupted
    rounds.push({ round: number, swarm, status, check: { code: checked.code, output: checked.output } })
    tellRound(context.output, rounds.at(-1))
    if (checked.code === 0) return ended(context.output, rounds, true)
    check = checked.output
  }
  return ended(context.output, rounds, false)
}

async function checkOf(
  context: CommandContext,
  { command }: Loop,
  { number, swarm, timeoutMs }: { readonly number: number; readonly swarm: string; readonly timeoutMs: number }
): Promise<{ status: LoopRound['status']; checked: Checked }> {
  const results = await context.api().call('swarm.results', { id: swarm })
  const env = { A2A_NODE_SWARM: swarm, A2A_NODE_ROUND: String(number) }
  const checked = await runCheck(command, { input: `${jsonLine(results)}\n`, env, timeoutMs })
  return { status: results.status, checked }
}

function tellRound(output: Output, round: LoopRound | undefined): void {
  if (round === undefined) return
  if (output.json) return output.print(jsonLine({ type: 'round', ...round }))
  const { code } = round.check
  output.note(
    `round ${round.round}: the check ${code === 0 ? 'passed' : code === null ? 'was ended' : `failed with exit code ${code}`}`
  )
  if (code !== 0 && round.check.output.trim() !== '') output.note(plainText(round.check.output.trimEnd()))
}

function ended(output: Output, rounds: readonly LoopRound[], passed: boolean): number {
  if (output.json) output.object('swarm-loop@1', { type: 'loop', passed, rounds })
  else {
    output.print(
      passed ? `the check passed in round ${rounds.length}` : `the check did not pass in ${rounds.length} rounds`
    )
    for (const { round, swarm, status } of rounds)
      output.print(`  round ${round}  ${status}  ${output.hint(`a2a-node swarm results ${swarm}`)}`)
  }
  return passed ? EXIT.ok : EXIT.failed
}

/** The goal of a round: what the check said of the last one is part of it. */
export function goalOf(goal: string, { number, check }: NonNullable<SwarmRequest['round']>): string {
  return number === 1
    ? goal
    : `${goal.slice(0, GOAL_MAX)}\n\nThe check of round ${number - 1} did not pass. It said:\n${check}`
}
