import { shown } from '../../kit/text.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
import { timeText } from '../words.js'

/** `events`: recent ones; with `--follow` those to come too. */
export const events: Action = async ({ output, api }, _args, options) => {
  const params = isSet(options, 'follow') ? { follow: true } : {}
  let seen = 0
  for await (const event of api().watch('node.events', params)) {
    seen++
    if (output.json) output.object('event@1', event)
    else output.print(`${output.paint('dim', timeText(event.at))}  ${shown(event.type, 40).padEnd(18)}  ${shown(event.message, 500)}`)
  }
  if (seen === 0 && !output.json) output.note('nothing happened yet')
  return EXIT.ok
}
