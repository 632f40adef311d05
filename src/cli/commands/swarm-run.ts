import { asNodeError, NodeError } from '../../kit/errors.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import { canAsk, confirm } from '../terminal/confirm.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'
import { countOption, isSet, type Options, textOption } from '../options.js'
import { ITEMS_MAX } from '../items/source.js'
import { jsonLine } from '../terminal/output.js'
import { followOwnSwarm } from '../swarm/follow.js'
import { withSuggestion } from '../suggest.js'
import { goalOf, runLoop } from '../swarm/loop.js'
import { hasPlanner, requestPlan } from '../swarm/planner.js'
import { printPlan, printPreview } from '../swarm/preview.js'
import { ResultFiles } from '../swarm/result-files.js'
import { type ResultsForm, resultsOption } from '../swarm/results.js'
import { type AskedSwarm, firstCapability, goalRequest, isForPlanner, placed, swarmRequest } from '../swarm/request.js'

const ROUNDS = 10
const ROUNDS_MAX = 1000

/** `swarm run <goal>`. */
export const runSwarm: Action = async (context, [goal = ''], options) => {
  const command = textOption(options, 'until')
  const results = resultsOption(options)
  const maxFailures = maxFailuresOption(options)
  checkLoop(options)
  const isPlanned = isForPlanner(options) && (await hasPlanner(context).catch(() => false))
  const asked = isPlanned ? goalRequest(goal, options) : await swarmRequest(goal, options)
  if (isPlanned && !isSet(options, 'yes') && !isSet(options, 'dryRun') && !mayAsk(context)) throw unasked()
  const launched = async (round?: NonNullable<SwarmRequest['round']>): Promise<AskedSwarm> => {
    const request = round === undefined ? asked.request : roundOf(asked, goalOf(goal, round), round)
    return isPlanned ? { ...asked, request: await planned(context, request, options) } : { ...asked, request }
  }
  if (isSet(options, 'dryRun')) return await preview(context, await launched())
  const launch = async (one: Pick<AskedSwarm, 'request' | 'planFile'>): Promise<string> =>
    (await withPlanFile(one, () => context.api().call('swarm.start', one.request))).id
  if (command === undefined)
    return await runOnce(context, {
      asked: await launched(),
      launch,
      results,
      maxFailures,
      isDetached: isSet(options, 'detach')
    })
  const maxRounds = countOption(options, 'maxRounds', [1, ROUNDS_MAX]) ?? ROUNDS
  return await runLoop(context, {
    command,
    maxRounds,
    maxFailures,
    requestOf: launched,
    launch: (one) => launch({ ...one, planFile: asked.planFile })
  })
}

function roundOf(
  { request, inputsOf }: AskedSwarm,
  goal: string,
  round: NonNullable<SwarmRequest['round']>
): SwarmRequest {
  return { ...request, ...inputsOf({ goal, round: round.number, check: round.check }), goal, round }
}

/**
 * The number of failed items that a swarm may have: `--max-failures N`; `--fail-fast` is 0.
 * @throws NodeError USAGE
 */
function maxFailuresOption(options: Options): number | undefined {
  const count = countOption(options, 'maxFailures', [0, ITEMS_MAX])
  const isFast = isSet(options, 'failFast')
  if (isFast && count !== undefined) throw usage('--fail-fast is --max-failures 0: leave one of them out')
  const given = isFast ? 0 : count
  if (given !== undefined && isSet(options, 'detach'))
    throw usage(`--${isFast ? 'fail-fast' : 'max-failures'} is kept by this command: leave --detach out`)
  return given
}

function checkLoop(options: Options): void {
  const isLoop = textOption(options, 'until') !== undefined
  if (!isLoop && textOption(options, 'maxRounds') !== undefined) throw usage('--max-rounds needs --until')
  if (isLoop && isSet(options, 'detach')) throw usage('--until runs its command here: leave --detach out')
  if (isLoop && textOption(options, 'idempotencyKey') !== undefined)
    throw usage('--until makes a swarm of every round: leave --idempotency-key out')
  if (isLoop && textOption(options, 'items') === '-')
    throw usage('--until reads the items for every round: give --items a file or a glob')
}

interface OneRun {
  readonly asked: AskedSwarm
  launch(asked: AskedSwarm): Promise<string>
  readonly results: ResultsForm
  readonly maxFailures: number | undefined
  readonly isDetached: boolean
}

async function runOnce(
  context: CommandContext,
  { asked, launch, results, maxFailures, isDetached }: OneRun
): Promise<number> {
  const files = results.form === 'files' ? await ResultFiles.open(results.directory) : null
  const id = await launch(asked).catch(async (error: unknown) => {
    await files?.discard()
    throw error
  })
  if (!isDetached) return await followOwnSwarm(context, id, { launched: asked, results, files, maxFailures })
  if (context.output.json) context.output.object('swarm-started@1', { id })
  else {
    context.output.note(`follow it: ${context.output.hint(`a2a-node swarm watch ${id}`)}`)
    context.output.print(id)
  }
  return EXIT.ok
}

/** Has a planner make the plan of a goal, shows it, and asks whether it may begin. */
async function planned(context: CommandContext, request: SwarmRequest, options: Options): Promise<SwarmRequest> {
  const plan = await requestPlan(context, request)
  const made = { ...request, plan, capability: firstCapability(plan) }
  if (context.output.json) context.output.print(jsonLine({ type: 'plan', plan }))
  else printPlan(context.output, plan)
  if (isSet(options, 'dryRun')) return made
  const found = await context.api().call('swarm.preview', made)
  if (found.error !== null)
    throw new NodeError(found.error.code, found.error.message, { data: found.error.data, next: found.error.next })
  const isAgreed = isSet(options, 'yes')
  if (!context.output.json) await printPreview(context.output, found, isAgreed)
  if (isAgreed || (await confirm('begin this plan?'))) return made
  throw new NodeError('CANCELED', 'the plan was not begun', { next: ["--plan '<file>'"] })
}

function mayAsk({ output }: CommandContext): boolean {
  return !output.json && canAsk(output)
}

function unasked(): NodeError {
  return usage(
    'the plan of a planner needs a confirmation, and there is no terminal: --yes begins it, --dry-run shows it'
  )
}

async function withPlanFile<T>({ planFile }: Pick<AskedSwarm, 'planFile'>, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw placed(asNodeError(error), planFile)
  }
}

/** `--dry-run`: shows who would do what; exits as the launch would, were it refused. */
async function preview(context: CommandContext, asked: AskedSwarm): Promise<number> {
  const { api, output } = context
  const seen = await withPlanFile(asked, () => api().call('swarm.preview', asked.request))
  const error = seen.error === null ? null : await withSuggestion(NodeError.fromBody(seen.error), context, [])
  const found = { ...seen, error: error?.toBody() ?? null }
  if (output.json)
    output.object('swarm-preview@1', { goal: asked.request.goal, strategy: asked.request.strategy, ...found })
  else await printPreview(output, found)
  return found.error === null ? EXIT.ok : EXIT_CODES[found.error.code]
}

function usage(message: string): NodeError {
  return new NodeError('USAGE', message, { next: ['a2a-node swarm run --help'] })
}
