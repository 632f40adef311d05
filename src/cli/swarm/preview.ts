import type { ErrorBody } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { SwarmPreview } from '../../ports/swarm-api.js'
import { jsonLine, type Output } from '../terminal/output.js'
import { type Cell, plural, printTable } from '../terminal/render.js'
import { ruleText } from './view.js'

/** Displayed characters of a sub-task of a plan. */
const TASK_MAX = 400

/** Prints the agents of each part, the excluded agents, and the refusals. `isBeginning`: the launch follows. */
export async function printPreview(
  output: Output,
  { stages, error }: SwarmPreview,
  isBeginning = false
): Promise<void> {
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
    output.print(
      `  ${stages.length === 1 ? '' : `${shown(id)}  `}${shown(one.agent)}  ${output.paint('dim', ruleText(one))}`
    )
  if (error !== null) printRefusal(output, error)
  if (error !== null) output.note('it would not begin')
  else if (!isBeginning) output.note(`nothing has begun; ${plural(stages.length, 'sub-task')}`)
}

function printRefusal(output: Output, error: ErrorBody): void {
  output.print(`${output.paint('red', shown(error.message, 1000))}  [${error.code}]`)
}

/** Shows the sub-tasks of a plan that an agent made, whatever it is: a line each. */
export function printPlan(output: Output, plan: unknown): void {
  const tasks: readonly unknown[] = isRecord(plan) && Array.isArray(plan['tasks']) ? plan['tasks'] : []
  output.print(`plan of ${plural(tasks.length, 'sub-task')}`)
  for (const task of tasks) output.print(`  ${shown(jsonLine(task), TASK_MAX)}`)
}
