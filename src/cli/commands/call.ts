import { NodeError } from '../../kit/errors.js'
import { parseJson, SIZED_LIMITS } from '../../kit/json.js'
import type { Action } from '../context.js'
import { given, jsonArgument, textOption } from '../options.js'
import { awaitReply, progressLevel, replyOptions } from '../reply.js'
import { readStdin } from '../stdin.js'

/** Bytes of an input on stdin: the largest value of `tools.maxPayloadBytes`. */
const INPUT_MAX = 16_777_216

/** `call <agent|-> <capability> <json|->`, and `call <card URL> [skill] <json|text|->`. */
export const call: Action = async (command, [agent = '', ...rest], options) => {
  const level = progressLevel(command, options)
  const isRemote = /^(?:https?|a2a-mesh):\/\//i.test(agent)
  if (rest.length < (isRemote ? 1 : 2)) throw missing(isRemote)
  const [capability = '', text = ''] = rest.length === 1 ? [undefined, rest[0]] : rest
  const context = given({ context: textOption(options, 'context') })
  const json = text === '-' ? await readStdin(INPUT_MAX, { again: command.output.typed }) : text
  if (!isRemote) {
    const params = {
      agent: agent === '-' ? null : agent,
      capability,
      input: jsonArgument(json, 'the input'),
      ...replyOptions(options),
      ...context
    }
    return await awaitReply(command, { name: 'message.call', params, level })
  }
  const skill = capability === '' ? undefined : capability
  const found = await command.api().call('a2a.find', given({ card: agent, skill }))
  const input = inputOf(json)
  const params = { agent: found.agent, capability: found.capability, ...replyOptions(options), ...context }
  const justification = textOption(options, 'justification')
  const wrapped = found.isWrapped ? given({ card: agent, skill, input, justification }) : input
  return await awaitReply(command, { name: 'message.call', params: { ...params, input: wrapped }, level })
}

/** Input that is not JSON is a text: people talk to agents. */
function inputOf(text: string): unknown {
  const parsed = parseJson(text, SIZED_LIMITS)
  return parsed.ok && typeof parsed.value === 'object' && parsed.value !== null ? parsed.value : text
}

function missing(isRemote: boolean): NodeError {
  const form = isRemote ? '<card URL> [skill] <json or text>' : '<agent> <capability> <json>'
  return new NodeError('USAGE', `call takes ${form}`, { next: ['a2a-node call --help'] })
}
