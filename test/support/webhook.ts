import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'

/** A notification as a receiver got it. */
export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly json: Record<string, unknown>
}

/** What a receiver answers with; null: it holds the request. */
export type ReceiverAnswer = { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | null

/** A webhook on this machine. */
export interface Receiver {
  readonly host: string
  readonly url: string
  readonly got: readonly Received[]
  /** What it answers with from now on, by what comes. Default: 200. */
  answer(how: (received: Received) => ReceiverAnswer): void
  /** Resolves with what it got once that many have come, or what it waits for is among it. */
  until(enough: number | ((got: readonly Received[]) => boolean)): Promise<readonly Received[]>
}

/** Starts a receiver; it is gone when the test ends. */
export async function receiver(t: Pick<Assert, 'teardown'>): Promise<Receiver> {
  const got: Received[] = []
  const waiting = new Set<() => void>()
  let how: (received: Received) => ReceiverAnswer = () => ({ status: 200 })
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      const received = { path: request.url ?? '', headers, body, json: JSON.parse(body) as Record<string, unknown> }
      const answer = how(received)
      got.push(received)
      if (answer !== null) response.writeHead(answer.status, answer.headers).end()
      for (const look of waiting) look()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    url: `http://${host}/hook`,
    got,
    answer: (next) => void (how = next),
    until: (enough) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (typeof enough === 'number' ? got.length < enough : !enough(got)) return
          waiting.delete(look)
          resolve([...got])
        }
        waiting.add(look)
        look()
      })
  }
}

/** The state of the task that a notification tells of. */
export function stateOf(received: Received | undefined): unknown {
  const json = received?.json ?? {}
  const told = (json['statusUpdate'] ?? json['task'] ?? json) as { status?: { state?: unknown } }
  return told.status?.state
}
