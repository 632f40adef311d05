import type http from 'node:http'
import type { Socket } from 'node:net'
import { countedAddress } from './address-limit.js'

/** The state of one connection of a client. */
export interface HttpConnectionState {
  /** Of the client, as it is counted. */
  readonly address: string
  /**
   * The answers that are not over, in the order in which they were asked for: the first is under way, the others wait
   * behind it.
   */
  readonly answers: http.ServerResponse[]
  /** Nothing more that comes on it is done. */
  isRefused: boolean
  /** The token that is being checked, until it is known whether what came with it is refused. */
  checking: Promise<unknown> | null
  /** Ends the reading of the body of its refused request. */
  stopReading: () => void
}

/** The connections of a listener. */
export class HttpConnections {
  readonly #states = new WeakMap<Socket, HttpConnectionState>()

  /** The state of a connection. */
  of(socket: Socket): HttpConnectionState {
    const known = this.#states.get(socket)
    if (known !== undefined) return known
    const connection: HttpConnectionState = {
      address: countedAddress(socket.remoteAddress ?? ''),
      answers: [],
      isRefused: false,
      checking: null,
      stopReading: ignore
    }
    this.#states.set(socket, connection)
    socket.on('close', () => hungUp(connection))
    return connection
  }
}

/** Waits for the check of a token. Requests behind it wait, too: they are dropped when the token is refused. */
export function waitFor<T>(connection: HttpConnectionState, found: Promise<T>): Promise<T> {
  const known = found.finally(() => {
    if (connection.checking === settled) connection.checking = null
  })
  const settled = known.then(ignore, ignore)
  connection.checking = settled
  return known
}

/**
 * Nothing begins for a client that is gone. Node tells only the answer that was being sent that it is over, none that
 * waits behind it.
 */
function hungUp(connection: HttpConnectionState): void {
  connection.isRefused = true
  for (const response of [...connection.answers]) {
    if (response.socket !== null || response.writableFinished) continue
    response.destroy()
    response.emit('close')
  }
}

/** Does nothing: for events and errors that need no answer. */
export function ignore(): void {}
