import { messageOf, NodeError } from '../../kit/errors.js'
import { utf8 } from '../../kit/ids.js'

/**
 * State of an agent between messages: a Map of JSON values (spec mcp-runtime, maxStateBytes). It is bounded in bytes:
 * the UTF-8 of its keys and of its values as JSON. It holds frozen copies, so later changes of a value do not affect
 * it.
 */
export class AgentState extends Map<string, unknown> {
  readonly #maxBytes: number
  readonly #sizes = new Map<string, number>()
  #bytes = 0
  #changes = 0

  constructor(maxBytes: number) {
    super()
    this.#maxBytes = maxBytes
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes
  }

  /** How often it was changed. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Stores a copy of a value.
   * @throws NodeError PAYLOAD_TOO_LARGE when the state would exceed its bound (it then stays unchanged); INVALID_INPUT
   * for a value without a JSON form
   */
  override set(key: string, value: unknown): this {
    const json = jsonOf(value)
    const size = utf8(key).byteLength + utf8(json).byteLength
    const bytes = this.#bytes - (this.#sizes.get(key) ?? 0) + size
    if (bytes > this.#maxBytes)
      throw new NodeError(
        'PAYLOAD_TOO_LARGE',
        `the state would hold ${bytes} bytes; at most ${this.#maxBytes} are allowed`,
        {
          data: { bytes, maxStateBytes: this.#maxBytes }
        }
      )
    this.#bytes = bytes
    this.#sizes.set(key, size)
    this.#changes++
    return super.set(key, frozen(JSON.parse(json)))
  }

  /** Removes a value; false when there is none. */
  override delete(key: string): boolean {
    if (!super.delete(key)) return false
    this.#bytes -= this.#sizes.get(key) ?? 0
    this.#sizes.delete(key)
    this.#changes++
    return true
  }

  /** Forgets everything. */
  override clear(): void {
    if (this.size > 0) this.#changes++
    super.clear()
    this.#sizes.clear()
    this.#bytes = 0
  }

  /** Takes the content of another state of the same bound. */
  restore(from: ReadonlyMap<string, unknown>): void {
    this.clear()
    for (const [key, value] of from) this.set(key, value)
  }
}

function jsonOf(value: unknown): string {
  try {
    const json: unknown = JSON.stringify(value)
    if (typeof json === 'string') return json
  } catch (error) {
    throw new NodeError('INVALID_INPUT', `the value has no JSON form: ${messageOf(error)}`)
  }
  throw new NodeError('INVALID_INPUT', 'the value has no JSON form')
}

function frozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  for (const child of Object.values(value)) frozen(child)
  return Object.freeze(value)
}
