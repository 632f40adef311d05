import { InputEnd } from './input-end.js'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Timer } from '../../kit/clock.js'
import type { NodeError } from '../../kit/errors.js'
import type { LongLine } from '../../kit/lines.js'
import { isKept, type LastKnown } from './last-known.js'
import { lineOf, longLine, readLines, wholeLine, writeLine } from './lines.js'
import {
  isMessageId,
  type RpcMessage,
  type MessageId,
  metaOf,
  paramsOf,
  SUBSCRIPTION_ID
} from '../../kit/mcp/rpc-message.js'
import { malformed, messageIn, notInitialized, resultOf, type Unanswered, unansweredOf } from './messages.js'
import { NodeLink, type NodeLinkDeps } from './node-link.js'
import { atOnce, withoutKnowledge } from './offline.js'
import { OwnRequests } from './own-requests.js'
import { Questions } from './questions.js'
import { changeNotices, LISTEN, SessionState } from '../../kit/mcp/session-state.js'
import { type SentRequest, WaitingRequests } from './waiting.js'

/** Bytes of a line of the client: above the largest message that a node can be set to take. */
const MAX_LINE_BYTES = 16_777_216 + 131_072
/** Bytes of a line of the node; the connection ends at a longer one. */
const MAX_ANSWER_BYTES = 268_435_456
/** Milliseconds that a request waits for a node that is expected, and for any other. */
const EXPECTED_MS = 20_000
const UNEXPECTED_MS = 2000
/** The same for a list that was never seen: clients give up after some seconds. */
const LIST_MS = 5000
/** Milliseconds for an attempt to connect, after which a client with a handshake is answered without the node. */
const CONNECT_MS = 1000
/** A request without an end waits as long as a timer can. */
const LISTEN_MS = 2 ** 31 - 1
/** Milliseconds after which a new answer is kept on disk. */
const KEEP_MS = 1000

const INITIALIZED: RpcMessage = { jsonrpc: '2.0', method: 'notifications/initialized' }
/** Requests that may be sent twice: none does work. */
const REPEATABLE: ReadonlySet<unknown> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  LISTEN,
  'logging/setLevel',
  'completion/complete'
])

/** Dependencies of a {@link Shim}. */
export interface ShimDeps extends NodeLinkDeps {
  readonly client: { readonly input: Readable; readonly output: Writable }
  readonly known: LastKnown
  /** Of this program. */
  readonly version: () => string
  /** A command that starts the node. */
  readonly startCommand: string
}

/** A request that the node has not answered. */
interface OpenRequest extends Omit<SentRequest, 'line'> {
  /** null when it must not be sent twice. */
  readonly line: Buffer | null
}

/**
 * An MCP connection that lives as long as its client, whatever becomes of the node. Lines go to and fro as they are.
 * Without a node, handshakes and lists are answered from the last known state, and calls wait for a while. A new node
 * process gets the handshake and subscriptions of the client, which then gets notifications of changed lists. A call
 * that was under way gets a retryable error, since it may have run.
 */
export class Shim {
  readonly #deps: ShimDeps
  readonly #link: NodeLink
  readonly #end: InputEnd
  readonly #session = new SessionState()
  /** Sent to the node, by id. */
  readonly #open = new Map<MessageId, OpenRequest>()
  readonly #waiting: WaitingRequests
  readonly #questions = new Questions()
  readonly #own: OwnRequests
  /** Acknowledgements of renewed `subscriptions/listen` that the client has already. */
  readonly #acknowledged = new Set<unknown>()
  /** The connection; `isReady`: the session of the client is renewed on it. */
  #node: { readonly stream: Duplex; isReady: boolean } | null = null
  #lastError: NodeError | null = null
  #hasFailed = false
  #keeping: Timer | null = null

  constructor(deps: ShimDeps) {
    this.#deps = deps
    this.#waiting = new WaitingRequests(deps.clock)
    this.#own = new OwnRequests(deps.clock)
    const isListen = ({ message }: Pick<SentRequest, 'message'>): boolean => message['method'] === LISTEN
    const isAnswered = (): boolean => [...this.#open.values(), ...this.#waiting.all()].every(isListen)
    this.#end = new InputEnd({ ...deps, isAnswered })
    this.#link = new NodeLink(deps, {
      opened: (stream) => void this.#opened(stream),
      failed: (error) => this.#failed(error)
    })
  }

  /** Serves the client until its input ends and its requests are answered. @throws NodeError as {@link NodeLink.run} */
  async run(): Promise<void> {
    readLines(this.#deps.client.input, MAX_LINE_BYTES, (line) => this.#fromClient(line))
    try {
      await Promise.race([this.#end.reached, this.#link.run()])
    } finally {
      this.close()
    }
  }

  /** Ends the connection to the node, and keeps the last known state. */
  close(): void {
    this.#deps.client.input.pause()
    this.#link.close()
    this.#waiting.takeAll()
    this.#deps.clock.clear(this.#keeping)
    this.#deps.known.write()
  }

  #fromClient(line: Uint8Array | LongLine): void {
    if (!(line instanceof Uint8Array)) return this.#tooLong(line)
    const message = messageIn(line)
    if (message !== null && typeof message['method'] === 'string' && isMessageId(message['id']))
      return this.#request({ id: message['id'], message, line: wholeLine(line) })
    if (message !== null && 'method' in message && !('id' in message)) return this.#notification(message, line)
    const isReady = this.#node?.isReady === true
    if (message !== null && !('method' in message) && isMessageId(message['id'])) {
      const answer = this.#questions.answered(message)
      if (answer !== null && isReady) this.#toNode(lineOf(answer))
    } else if (isReady) this.#toNode(wholeLine(line))
    else if (line.some((byte) => byte > 0x20)) this.#toClient(malformed('a line is one message as JSON'))
  }

  /** The node refuses it: it gets the edges, in which it finds the id, and a line that is too long for it as well. */
  #tooLong(line: LongLine): void {
    if (this.#node?.isReady === true) this.#toNode(longLine(line, MAX_LINE_BYTES))
    else this.#toClient(malformed(`a line has at most ${MAX_LINE_BYTES} bytes`))
  }

  #request(request: SentRequest): void {
    const { id, message, line } = request
    if (this.#node?.isReady !== true) return this.#wait(request)
    this.#toNode(line)
    if (!this.#open.has(id)) this.#open.set(id, { id, message, line: REPEATABLE.has(message['method']) ? line : null })
  }

  #notification(message: RpcMessage, line: Uint8Array): void {
    this.#session.notified(message)
    if (message['method'] === 'notifications/cancelled') {
      const { requestId: id } = paramsOf(message)
      if (isMessageId(id)) {
        this.#open.delete(id)
        if (this.#waiting.take(id) !== null) return
      }
    }
    if (this.#node?.isReady === true) this.#toNode(wholeLine(line))
  }

  /** Keeps a request for the node that comes; a handshake, a known list and the like are answered soon or at once. */
  #wait(request: SentRequest): void {
    const { id, message } = request
    if (this.#hasFailed && this.#answered(request)) return
    const isAdded = this.#waiting.add(request, this.#waitMs(message), (expired) => this.#expired(expired))
    if (!isAdded) return this.#toClient(unansweredOf(message, id, this.#fault('too many requests wait for the node')))
    this.#link.hurry()
  }

  #waitMs(message: RpcMessage): number {
    const isHandshake = message['method'] === 'initialize'
    if (isHandshake || this.#deps.known.answerTo(message) !== null) return CONNECT_MS
    if (isKept(message)) return LIST_MS
    if (message['method'] === LISTEN) return LISTEN_MS
    return this.#link.isExpected ? EXPECTED_MS : UNEXPECTED_MS
  }

  #expired(request: SentRequest): void {
    if (this.#answered(request)) return
    const { id, message } = request
    if (!this.#session.takes(message)) return this.#toClient(notInitialized(id))
    const result = withoutKnowledge(message, this.#deps.version())
    if (result !== null) this.#answer(request, result)
    else this.#toClient(unansweredOf(message, id, this.#fault('no node of this home runs')))
  }

  /** Answers a request without the node; false when that is too early, or not possible. */
  #answered(request: SentRequest): boolean {
    const { message } = request
    const isHandshake = message['method'] === 'initialize'
    if (!this.#session.takes(message)) return false
    const result =
      atOnce(message) ??
      this.#deps.known.answerTo(message) ??
      (isHandshake ? withoutKnowledge(message, this.#deps.version()) : null)
    if (result === null) return false
    this.#answer(request, result)
    return true
  }

  #answer({ id, message }: SentRequest, result: RpcMessage): void {
    this.#session.answered(message)
    this.#toClient(resultOf(id, result))
  }

  #fault(reason: string): Unanswered {
    const { startCommand } = this.#deps
    if (this.#lastError === null) return { message: reason, next: [startCommand] }
    return { message: `${reason}: ${this.#lastError.message} (${this.#lastError.code})`, next: [startCommand] }
  }

  #failed(error: NodeError): void {
    if (error.code !== 'NODE_NOT_RUNNING') this.#lastError = error
    this.#hasFailed = true
    for (const request of this.#waiting.all()) if (this.#answered(request)) this.#waiting.take(request.id)
  }

  async #opened(stream: Duplex): Promise<void> {
    const node = { stream, isReady: false }
    this.#node = node
    readLines(stream, MAX_ANSWER_BYTES, (line) => this.#fromNode(line, stream))
    stream.once('close', () => this.#lost())
    const isRenewal = this.#hasFailed
    if (!(await this.#renewed())) return void stream.destroy()
    if (this.#node !== node) return
    node.isReady = true
    this.#hasFailed = false
    this.#lastError = null
    for (const request of this.#waiting.takeAll()) {
      this.#request(request)
      if (request.message['method'] === 'initialize' && this.#session.isAhead) this.#toNode(lineOf(INITIALIZED))
    }
    if (!isRenewal) return
    for (const notice of changeNotices(this.#session.isInitialized, this.#open.values())) this.#toClient(notice)
  }

  /** Brings a new node process to the state of the client. False when it does not take the handshake. */
  async #renewed(): Promise<boolean> {
    const [handshake, ...others] = this.#session.requests()
    if (handshake === undefined) return true
    if (!(await this.#ask(handshake))) return false
    if (this.#session.isInitialized) this.#toNode(lineOf(INITIALIZED))
    // A resource may be gone: all others are renewed nevertheless.
    await Promise.all(others.map((request) => this.#ask(request)))
    return true
  }

  #ask(request: RpcMessage): Promise<boolean> {
    return this.#own.ask(request, (message) => this.#toNode(lineOf(message)))
  }

  #fromNode(line: Uint8Array | LongLine, stream: Duplex): void {
    if (!(line instanceof Uint8Array)) return void stream.destroy()
    const message = messageIn(line)
    if (message === null) return
    const { id, method } = message
    if (method === undefined) {
      if (this.#own.take(message)) return
      if (isMessageId(id)) this.#responded(id, message)
    } else if (isMessageId(id)) return this.#toClient(this.#questions.asked(message, id))
    else if (method === 'notifications/cancelled') return this.#toClient(this.#questions.canceled(message) ?? message)
    else if (this.#isRepeated(message)) return
    writeLine(this.#deps.client.output, wholeLine(line), stream)
    this.#end.check()
  }

  #isRepeated(message: RpcMessage): boolean {
    if (message['method'] !== 'notifications/subscriptions/acknowledged') return false
    return this.#acknowledged.delete(metaOf(message)[SUBSCRIPTION_ID])
  }

  #responded(id: MessageId, { result }: RpcMessage): void {
    const request = this.#open.get(id)
    this.#open.delete(id)
    if (request === undefined || typeof result !== 'object' || result === null) return
    this.#session.answered(request.message)
    this.#deps.known.learn(request.message, result as RpcMessage)
    this.#deps.clock.clear(this.#keeping)
    this.#keeping = this.#deps.clock.after(KEEP_MS, () => this.#deps.known.write())
  }

  /** The node is gone: requests that may be repeated wait for the next one, all others are answered. */
  #lost(): void {
    this.#node = null
    this.#hasFailed = true
    this.#own.end()
    for (const id of this.#questions.end())
      this.#toClient({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: id, reason: 'the node that asked has ended' }
      })
    this.#acknowledged.clear()
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { id, message, line } of open) {
      if (line === null)
        this.#toClient(
          unansweredOf(message, id, this.#fault('the node ended during this request; its work may have been done'))
        )
      else {
        if (message['method'] === LISTEN) this.#acknowledged.add(id)
        this.#wait({ id, message, line })
      }
    }
  }

  #toNode(line: Buffer): void {
    if (this.#node !== null) writeLine(this.#node.stream, line, this.#deps.client.input)
  }

  #toClient(message: RpcMessage): void {
    writeLine(this.#deps.client.output, lineOf(message), this.#node?.stream ?? null)
    this.#end.check()
  }
}
