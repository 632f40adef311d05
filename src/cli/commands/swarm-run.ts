import { asNodeError, type ErrorBody } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { SwarmPreview } from '../../ports/swarm-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'
import { isSet } from '../options.js'
import type { Output } from '../output.js'
import { type Cell, plural, printTable } from '../render.js'
import { followOwnSwarm } from '../swarm-follow.js'
import { type AskedSwarm, placed, swarmRequest } from '../swarm-request.js'
import { ruleText } from '../swarm-view.js'

/** `swarm run <goal>`. */
export const runSwarm: Action = async (context, [goal = ''], options) => {
  const asked = await swarmRequest(goal, options)
  if (isSet(options, 'dryRun')) return await preview(context, asked)
  const { request, isList } = asked
  const { id } = await told(asked, () => context.api().call('swarm.start', request))
  if (!isSet(options, 'detach')) return await followOwnSwarm(context, id, { request, isList })
  if (context.output.json) context.output.object('swarm-started@1', { id })
  else {
    context.output.note(`follow it: ${context.output.hint(`a2a-node swarm watch ${id}`)}`)
    context.output.print(id)
  }
  return EXIT.ok
}

async function told<T>({ planFile }: AskedSwarm, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw placed(asNodeError(error), planFile)
  }
}

/** `--dry-run`: shows who would do what; exits as the launch would, were it refused. */
async function preview({ api, output }: CommandContext, asked: AskedSwarm): Promise<number> {
  const found = await told(asked, () => api().call('swarm.preview', asked.request))
  if (output.json) output.object('swarm-preview@1', { goal: asked.request.goal, strategy: asked.request.strategy, ...found })
  else await printPreview(output, found)
  return found.error === null ? EXIT.ok : EXIT_CODES[found.error.code]
}

async function printPreview(output: Output, { stages, error }: SwarmPreview): Promise<void> {
  const rows = stages.map(({ id, capability, labels, items, needs, agents, isPinned }): Cell[] => [
    { text: id, style: 'bold' },
    capability,
    labels.length === 0 ? '-' : labels.join(', '),
    String(items),
    needs.length === 0 ? '-' : needs.join(', '),
    agents.length === 0 ? 'nobody' : `${isPinned || agents.length === 1 ? '' : 'shared by '}${agents.join(', ')}`
  ])
  await printTable(output, ['SUB-TASK', 'CAPABILITY', 'LABELS', 'ITEMS', 'AFTER', 'AGENTS'], rows)
  const left = stages.flatMap(({ id, leftOut }) => leftOut.map((one) => ({ id, one })))
  if (left.length > 0) output.print('left out')
  for (const { id, one } of left)
    output.print(`  ${stages.length === 1 ? '' : `${shown(id)}  `}${shown(one.agent)}  ${output.paint('dim', ruleText(one))}`)
  if (error !== null) printRefusal(output, error)
  output.note(error === null ? `dry run: nothing was begun; ${plural(stages.length, 'sub-task')}` : 'dry run: it would not begin')
}

function printRefusal(output: Output, error: ErrorBody): void {
  output.print(`${output.paint('red', shown(error.message, 1000))}  [${error.code}]`)
}
