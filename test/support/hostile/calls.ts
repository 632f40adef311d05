import type { NoiseStream } from 'hyperswarm'
import { encodeCall, type CallPart } from '../../../src/domain/channel/call.js'
import { keyToText, utf8 } from '../../../src/kit/ids.js'
import type { Eve } from '../hostile.js'

/** Calls of the A2A protocol that Eve makes at her victim, over her link and by her own rules. */
export class EvilCalls {
  readonly #eve: Eve
  #id = 0
  #stream: NoiseStream | null = null

  constructor(eve: Eve) {
    this.#eve = eve
  }

  /** Sends a call; what is answered is not looked at. */
  async call(method: string, params: object): Promise<void> {
    const id = ++this.#id
    const body = utf8(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    const part: CallPart = { type: 'request', id, path: '/agents/text', parameters: {}, body }
    await this.#eve.message({ kind: 'call', bytes: encodeCall(part) })
  }

  /** Makes tasks at the victim, each with a message of so many characters. Resolves when it has at least as many. */
  async tasks(count: number, length: number): Promise<void> {
    // A member has 64 calls open at most: what is beyond is refused.
    for (let total = 0; total < count; total = await this.total())
      for (let at = 0; at < 32; at++) {
        const message = { messageId: `evil_${this.#id}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(length) }] }
        await this.call('SendStreamingMessage', { message })
      }
  }

  /**
   * How many tasks the victim says that it has; 0 when a link ends meanwhile. It answers when it has answered what was
   * asked before.
   */
  async total(): Promise<number> {
    const { seen } = this.#eve.member
    seen.frames.length = 0
    await this.call('ListTasks', { pageSize: 1 })
    const before = seen.closed.length
    await seen.until(() => this.#seenTotal() !== null || seen.closed.length > before)
    return this.#seenTotal() ?? 0
  }

  #seenTotal(): number | null {
    for (const { frame } of this.#eve.member.seen.frames) {
      const [, total] = /"totalSize":(\d+)/.exec(Buffer.from(frame).toString('latin1')) ?? []
      if (total !== undefined) return Number(total)
    }
    return null
  }

  /** Reads nothing more of the stream to the victim, until told. */
  stop(): void {
    const { member, victim } = this.#eve
    const streams = [...member.swarm.connections]
    const stream = streams.find((one) => keyToText(one.remotePublicKey) === victim.id)
    if (stream === undefined) throw new Error('she has no stream to the victim')
    this.#stream = stream
    stream.pause()
  }

  /** Reads on; what was sent meanwhile then comes. */
  go(): void {
    this.#stream?.resume()
  }
}
