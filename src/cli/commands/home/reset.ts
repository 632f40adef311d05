import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { ResetPlan } from '../../../maintenance/reset.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isSet } from '../../options.js'
import { agreed } from '../../terminal/agreed.js'
import type { Output } from '../../terminal/output.js'
import { plural } from '../../terminal/render.js'

/** `reset`: lists the data of the home, asks on a terminal, and removes it. */
export const reset: Action = async (context, _args, options) => {
  const { output } = context
  const isDryRun = isSet(options, 'dryRun')
  const { resetHome } = await import('../../../maintenance/reset.js')
  const plans: ResetPlan[] = []
  const done = await resetHome(context.paths(), async (plan) => {
    plans.push(plan)
    if (!output.json) printPlan(output, plan)
    return !isDryRun && (await agreed(output, options, { question: 'remove all of it?' }))
  })
  if (done === null && !isDryRun) throw new NodeError('CANCELED', 'nothing was removed', { next: ['a2a-node status'] })
  if (output.json) output.object('reset@1', { ...plans[0], isReset: done !== null })
  else if (done === null) output.note('nothing was removed (--dry-run)')
  else output.print(`removed ${plural(done.removed.length, 'path')} in ${shown(done.home, 4096)}`)
  return EXIT.ok
}

function printPlan(output: Output, { home, node, removed, kept }: ResetPlan): void {
  const mesh = node.mesh === null ? 'in no mesh' : `mesh ${shown(node.mesh)}`
  output.print(`${shown(home, 4096)}: node ${shown(node.name ?? 'without a name')}, ${mesh}`)
  for (const place of removed) output.print(`removes   ${shown(place, 4096)}`)
  for (const place of kept) output.print(`keeps     ${shown(place, 4096)}`)
  output.print(`The key of the node is lost with it. To keep a way back: ${output.hint('a2a-node backup <file>')}`)
}
