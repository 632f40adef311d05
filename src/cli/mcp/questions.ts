import { isMessageId, type MessageId, paramsOf, type RpcMessage } from '../../kit/mcp/rpc-message.js'

/**
 * Questions of a node to the client of this process. Node processes count from the same number, so questions of a later
 * one get ids of their own: a late answer to an earlier process must not answer another question.
 */
export class Questions {
  /** Ids of the node by ids of the client. */
  readonly #open = new Map<unknown, MessageId>()
  #processes = 0

  /** The question as the client gets it. */
  asked(question: RpcMessage, id: MessageId): RpcMessage {
    const known = this.#known(id)
    this.#open.set(known, id)
    return { ...question, id: known }
  }

  /** The answer as the node gets it; null when its question is no longer open. */
  answered(answer: RpcMessage): RpcMessage | null {
    const id = this.#open.get(answer['id'])
    this.#open.delete(answer['id'])
    return id === undefined ? null : { ...answer, id }
  }

  /** The node takes a question back; null when the notification is about something else. */
  canceled(notification: RpcMessage): RpcMessage | null {
    const params = paramsOf(notification)
    const { requestId } = params
    if (!isMessageId(requestId)) return null
    const known = this.#known(requestId)
    return this.#open.delete(known) ? { ...notification, params: { ...params, requestId: known } } : null
  }

  /** The process is gone: the ids of its open questions, as the client knows them. */
  end(): readonly unknown[] {
    const open = [...this.#open.keys()]
    this.#open.clear()
    this.#processes++
    return open
  }

  #known(id: MessageId): MessageId {
    return this.#processes === 0 ? id : `${this.#processes}:${id}`
  }
}
