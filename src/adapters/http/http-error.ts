/** Headers of an answer. */
export type HttpHeaders = Readonly<Record<string, string>>

/** A request that is answered with an error: `{"error":{"code","message"}}`. */
export class HttpError extends Error {
  readonly status: number
  /** For programs, in capitals. */
  readonly code: string
  readonly headers: HttpHeaders
  /** Its body in the words of a protocol, where it is not that of the listener. */
  shape: object | null

  /** `message` goes to the client unchanged: use the node's own words and no secret. */
  constructor(
    status: number,
    {
      code,
      message,
      headers = {},
      shape = null
    }: { code: string; message: string; headers?: HttpHeaders; shape?: object | null }
  ) {
    super(message)
    this.name = 'HttpError'
    this.status = status
    this.code = code
    this.headers = headers
    this.shape = shape
  }

  /** The body of its answer. */
  get body(): Buffer {
    return Buffer.from(JSON.stringify(this.shape ?? { error: { code: this.code, message: this.message } }))
  }
}

/** The answer to a fault of the node itself. */
export function internalError(): HttpError {
  return new HttpError(500, { code: 'INTERNAL', message: 'the node failed at this request' })
}
