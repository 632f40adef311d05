import { NodeError } from '../../kit/errors.js'
import type { SwarmRequest } from '../../ports/swarm-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isGlob } from '../items/glob.js'
import { ITEMS_MAX, readItems } from '../items/source.js'
import { type InputTemplate, parseTemplate, plainInput } from '../items/template.js'
import { countOption, durationOption, given, isSet, type Options, textOption } from '../options.js'
import { followOwnSwarm } from '../swarm-follow.js'

/** Characters of an idempotency key. */
const KEY_MAX = 256

/** `swarm run <goal>`. */
export const runSwarm: Action = async (context, [goal = ''], options) => {
  const request = await swarmRequest(goal, options)
  const { id } = await context.api().call('swarm.start', request)
  if (!isSet(options, 'detach')) return await followOwnSwarm(context, id, { request, isList: isList(options) })
  if (context.output.json) context.output.object('swarm-started@1', { id })
  else {
    context.output.note(`follow it: ${context.output.hint(`a2a-node swarm watch ${id}`)}`)
    context.output.print(id)
  }
  return EXIT.ok
}

/** Are the items lines, not files? */
function isList(options: Options): boolean {
  const source = textOption(options, 'items')
  return source !== undefined && !isGlob(source)
}

/** Makes the request of the flags. @throws NodeError USAGE */
async function swarmRequest(goal: string, options: Options): Promise<SwarmRequest> {
  const capability = textOption(options, 'capability')
  if (capability === undefined)
    throw usage('--capability is required: what must the agents be able to do?', ['a2a-node agents', 'a2a-node swarm run --help'])
  const source = textOption(options, 'items')
  const strategy = (textOption(options, 'strategy') ?? (source === undefined ? 'each' : 'map')) as 'each' | 'map'
  if (goal.trim() === '') throw usage('the goal is empty')
  if (strategy === 'map' && source === undefined) throw usage('the strategy map needs --items')
  if (strategy === 'each' && source !== undefined) throw usage('the strategy each takes no --items: every agent gets the same input')
  if (source === undefined && isSet(options, 'attach')) throw usage('--attach needs --items')
  const text = textOption(options, 'input')
  const template = text === undefined ? null : parseTemplate(text)
  const shared = given({
    maxParallel: countOption(options, 'maxParallel', [1, ITEMS_MAX]),
    retries: countOption(options, 'retries', [0, 100]),
    deadlineMs: durationOption(options, 'deadline'),
    justification: textOption(options, 'justification'),
    idempotencyKey: keyOption(options),
    allowRepeat: isSet(options, 'allowRepeat') ? true : undefined
  })
  const input = source === undefined ? eachInput(template) : { items: await mapItems(source, template, isSet(options, 'attach')) }
  return { goal, capability, strategy, ...input, ...shared }
}

function keyOption(options: Options): string | undefined {
  const key = textOption(options, 'idempotencyKey')
  if (key !== undefined && (key === '' || key.length > KEY_MAX)) throw usage(`--idempotency-key takes 1 to ${KEY_MAX} characters`)
  return key
}

function eachInput(template: InputTemplate | null): { input?: unknown } {
  if (template?.hasPlaceholders) throw usage('{item}, {file} and {text} need --items')
  return template === null ? {} : { input: template.inputOf(null) }
}

async function mapItems(source: string, template: InputTemplate | null, attach: boolean): Promise<NonNullable<SwarmRequest['items']>> {
  const items = await readItems(source, { cwd: process.cwd(), attach })
  return items.map((item) => ({ item: item.name, input: template === null ? plainInput(item) : template.inputOf(item) }))
}

function usage(message: string, next: readonly string[] = ['a2a-node swarm run --help']): NodeError {
  return new NodeError('USAGE', message, { next })
}
