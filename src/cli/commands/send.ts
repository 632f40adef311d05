import type { Action } from '../context.js'
import { given, isSet, textOption } from '../options.js'
import { awaitReply, progressLevel, replyOptions } from '../reply.js'
import { readStdin } from '../stdin.js'

/** Bytes of a text on stdin: the largest value of `tools.maxPayloadBytes`. */
const TEXT_MAX = 16_777_216

/** `send <agent|*> <text|->`. */
export const send: Action = async (context, [agent = '', text = ''], options) => {
  const level = progressLevel(context, options)
  const type = textOption(options, 'type') as 'request' | 'notification' | undefined
  const body = text === '-' ? await readStdin(TEXT_MAX, { again: context.output.typed }) : text
  const params = {
    agent,
    text: body,
    ...given({ type, all: isSet(options, 'all') ? true : undefined }),
    ...replyOptions(options)
  }
  return await awaitReply(context, { name: 'message.send', params, level })
}
