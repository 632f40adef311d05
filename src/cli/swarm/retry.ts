import { shown } from '../../kit/text.js'
import type { SwarmInfo } from '../../ports/swarm-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { given, isSet } from '../options.js'
import type { Output } from '../terminal/output.js'
import { plural } from '../terminal/render.js'
import { followOwnSwarm } from './follow.js'
import { ResultFiles } from './result-files.js'
import { resultsOption } from './results.js'

/** `swarm retry <id>`: tries its failed items again, as a new swarm, and follows that. */
export const retrySwarm: Action = async (context, [id = ''], options) => {
  const { output } = context
  const results = resultsOption(options)
  const flag = (name: string): true | undefined => (isSet(options, name) ? true : undefined)
  const files = results.form === 'files' ? await ResultFiles.open(results.directory) : null
  const params = { id, ...given({ failed: flag('failed'), unknown: flag('unknown') }) }
  const { id: retried } = await context
    .api()
    .call('swarm.retry', params)
    .catch(async (error: unknown) => {
      await files?.discard()
      throw error
    })
  // The retry is launched already, so a node that stops now must not hide its id.
  const ended = await context
    .api()
    .call('swarm.show', { id })
    .catch(() => null)
  if (ended !== null) noteLeftOut(output, ended)
  if (!isSet(options, 'detach')) return await followOwnSwarm(context, retried, { launched: null, results, files })
  if (output.json) output.object('swarm-started@1', { id: retried })
  else {
    output.note(`follow it: ${output.hint(`a2a-node swarm watch ${retried}`)}`)
    output.print(retried)
  }
  return EXIT.ok
}

/** A canceled swarm has items without an outcome, whose inputs are not kept. */
function noteLeftOut(output: Output, { id, counts }: SwarmInfo): void {
  const { total, completed, failed, skipped = 0 } = counts
  const open = total - completed - failed - skipped
  if (open === 0) return
  const items = `${plural(open, 'item')} of swarm ${shown(id)}`
  output.note(`not tried again: ${items} without an outcome when it was canceled; launch them anew`)
}
