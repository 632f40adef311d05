import type { Transport } from '@modelcontextprotocol/client'

/** Answers to a server's own requests that wait for it to read them. */
const MAX_UNREAD_ANSWERS = 64
/** Longest id of a request of a server that is answered, in characters: the answer repeats it. */
const MAX_ANSWERED_ID = 256

/**
 * Bounds the answers kept for a server that asks and does not read: the client library answers every request of a
 * server at once. `cut` ends the connection.
 */
export function boundAnswers(transport: Transport, cut: (reason: string) => void): void {
  const send = transport.send.bind(transport)
  let unread = 0
  transport.send = async (message, options) => {
    if ('method' in message) return await send(message, options)
    if (typeof message.id === 'string' && message.id.length > MAX_ANSWERED_ID) return
    if (unread >= MAX_UNREAD_ANSWERS) return cut('it asks and does not read the answers')
    unread++
    try {
      await send(message, options)
    } finally {
      unread--
    }
  }
}
