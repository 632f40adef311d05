import { shown } from '../../kit/text.js'
import type { EventInfo } from '../../ports/node-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isSet } from '../options.js'
import { jsonLine, type Output } from '../output.js'
import { timeText } from '../words.js'

/** Longest line, where no terminal says how wide it is. */
const LINE_MAX = 500
const VALUE_MAX = 80

/** `events`: recent ones; with `--follow` those to come too. */
export const events: Action = async ({ output, api }, _args, options) => {
  const params = isSet(options, 'follow') ? { follow: true } : {}
  let seen = 0
  for await (const event of api().watch('node.events', params)) {
    seen++
    if (output.json) output.object('event@1', event)
    else output.print(eventLine(output, event))
  }
  if (seen === 0 && !output.json) output.note('nothing happened yet')
  return EXIT.ok
}

function eventLine(output: Output, event: EventInfo): string {
  const time = timeText(event.at)
  const type = shown(event.type, 40).padEnd(18)
  const left = Math.max(20, (output.width ?? LINE_MAX) - time.length - type.length - 4)
  // A command to type ends the message that names one.
  const message = event.message.replace(/a2a-node .*$/, (command) => output.hint(command))
  return `${output.paint('dim', time)}  ${type}  ${shown([message, ...fieldTexts(event.data)].join('  '), left)}`
}

/** Who and what: `key=value` of each field. A payload is no line of a log. */
function fieldTexts(data: EventInfo['data']): string[] {
  if (typeof data !== 'object' || data === null) return []
  return Object.entries(data)
    .filter(([key, value]) => key !== 'payload' && value !== null && value !== undefined)
    .map(([key, value]) => `${shown(key, 40)}=${shown(typeof value === 'string' ? value : jsonLine(value), VALUE_MAX)}`)
}
