import type { Action } from '../context.js'
import { jsonArgument } from '../options.js'
import { awaitReply, replyOptions } from '../reply.js'
import { readStdin } from '../stdin.js'

const INPUT_MAX = 1_048_576

/** `call <agent|-> <capability> <json|->`. */
export const call: Action = async (context, [agent = '', capability = '', json = ''], options) => {
  const input = jsonArgument(json === '-' ? await readStdin(INPUT_MAX, context.output.typed) : json, 'the input')
  const params = { agent: agent === '-' ? null : agent, capability, input, ...replyOptions(options) }
  return await awaitReply(context, 'message.call', params)
}
