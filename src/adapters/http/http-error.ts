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

  /** `message` is shown to the client as it is: in the node's own words, nothing secret. */
  constructor(
    status: number,
    { code, message, headers = {}, shape = null }: { code: string; message: string; headers?: HttpHeaders; shape?: object | null }
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

/** The answer to what failed for a reason of the node's own. */
export function internalError(): HttpError {
  return new HttpError(500, { code: 'INTERNAL', message: 'the node failed at this request' })
}
