import { MAX_LISTED_EVENTS } from '../../adapters/control/terms.js'
import { EVENT_TYPES, isEventType } from '../../kit/names/event-types.js'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { EventInfo, EventQuery, NodeApi } from '../../ports/node-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { idsIn, type NodeNames, nodeNames, withNames } from '../node-names.js'
import { countOption, given, isSet, type Options, sinceOption, textOption } from '../options.js'
import { jsonLine, type Output } from '../terminal/output.js'
import { logLine } from '../terminal/log-line.js'
import { rttText } from '../words.js'

const VALUE_MAX = 80

/** `events`: recent ones; with `--follow` those to come too. */
export const events: Action = async ({ output, api }, _args, options) => {
  const params = queryOf(options)
  const names = new EventNames(api())
  let seen = 0
  for await (const event of api().watch('node.events', params)) {
    seen++
    if (output.json) output.object('event@1', { ...event, message: hinted(output, event.message) })
    else output.print(eventLine(output, event, await names.of(event)))
  }
  if (seen === 0 && !output.json)
    output.note(Object.keys(params).length === 0 ? 'nothing happened yet' : 'no event matches')
  return EXIT.ok
}

/** @throws NodeError USAGE */
function queryOf(options: Options): EventQuery {
  const types = textOption(options, 'type')?.split(',')
  const unknown = types?.find((type) => !isEventType(type))
  if (unknown !== undefined)
    throw new NodeError(
      'USAGE',
      `--type takes types, comma-separated, of ${EVENT_TYPES.join(', ')}, not ${JSON.stringify(unknown)}`
    )
  const switches = (['follow', 'all', 'failed'] as const).flatMap((name) =>
    isSet(options, name) ? [[name, true] as const] : []
  )
  return {
    ...Object.fromEntries(switches),
    ...given({
      types: types?.filter(isEventType),
      about: textOption(options, 'about'),
      since: sinceOption(options, 'since'),
      limit: countOption(options, 'limit', [1, MAX_LISTED_EVENTS])
    })
  }
}

/** Names of nodes, fetched again when an event has an unknown id. */
class EventNames {
  readonly #api: NodeApi
  readonly #asked = new Set<string>()
  #names: NodeNames = new Map()

  constructor(api: NodeApi) {
    this.#api = api
  }

  async of(event: EventInfo): Promise<NodeNames> {
    const fresh = idsIn(jsonLine(event)).filter((id) => !this.#asked.has(id))
    const isRenamed = event.data['code'] === 'renamed'
    if (fresh.length > 0 || isRenamed) this.#names = await nodeNames(this.#api)
    for (const id of fresh) this.#asked.add(id)
    return this.#names
  }
}

/** A command to type ends the message that names one. */
function hinted(output: Output, message: string): string {
  return message.replace(/a2a-node .*$/, (command) => output.hint(command))
}

function eventLine(output: Output, event: EventInfo, names: NodeNames): string {
  const message = hinted(output, withNames(event.message, names))
  const text = [message, ...fieldTexts(event, names)].join('  ')
  return logLine(output, { at: event.at, columns: [{ text: event.type, width: 18 }], text })
}

/** `key=value` of each field that adds to the message. Payloads are left out of a line. */
function fieldTexts({ data, message }: EventInfo, names: NodeNames): string[] {
  const texts: string[] = []
  const printed = new Set<string>()
  for (const [key, value] of Object.entries(data)) {
    if (key === 'payload' || value === null || value === undefined) continue
    const isDuration = typeof value === 'number' && key.endsWith('Ms')
    const text = isDuration ? rttText(value) : withNames(typeof value === 'string' ? value : jsonLine(value), names)
    if (printed.has(text) || (key === 'code' && message.startsWith(`${text} `))) continue
    if (typeof value === 'string') printed.add(text)
    texts.push(`${shown(key, 40)}=${shown(text, VALUE_MAX)}`)
  }
  return texts
}
