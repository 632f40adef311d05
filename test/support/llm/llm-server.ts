import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Assert } from 'brittle'
import { eventsOf, type Refusal } from './shapes.js'

/** A question as it came. */
export interface SeenQuestion {
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: {
    readonly model: string
    readonly stream: boolean
    readonly max_tokens?: number
    readonly messages: readonly {
      readonly role: string
      readonly content: unknown
      readonly tool_calls?: unknown
      readonly tool_call_id?: string
    }[]
    readonly tools?: readonly {
      readonly function: { readonly name: string; readonly description: string; readonly parameters: unknown }
    }[]
  }
  /** Resolves when the connection of the question is closed. */
  readonly closed: Promise<void>
}

/** Answers one question. */
export type Answerer = (response: http.ServerResponse, seen: SeenQuestion) => void

/**
 * A server on loopback that answers each question by the next of what it was told; the last one answers all that
 * follow.
 */
export interface LlmServer {
  readonly url: string
  readonly seen: readonly SeenQuestion[]
  /** Resolves with the n-th question (from 0). */
  question(n: number): Promise<SeenQuestion>
}

/** Starts one; it is closed when the test ends. */
export async function llmServer(t: Assert, ...answers: readonly Answerer[]): Promise<LlmServer> {
  const seen: SeenQuestion[] = []
  const waiting: { readonly n: number; resolve(question: SeenQuestion): void }[] = []
  const server = http.createServer((request, response) => {
    // Its list of models, by which a node sees that it is there.
    if (request.method === 'GET')
      return void response.setHeader('content-type', 'application/json').end('{"object":"list","data":[]}')
    const chunks: Uint8Array[] = []
    request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as SeenQuestion['body']
      const closed = new Promise<void>((resolve) => response.once('close', resolve))
      const question = { path: request.url ?? '', headers: request.headers, body, closed }
      const answer = answers[Math.min(seen.length, answers.length - 1)]
      seen.push(question)
      for (const one of waiting) if (one.n === seen.length - 1) one.resolve(question)
      answer?.(response, question)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    question: (n) =>
      seen[n] === undefined ? new Promise((resolve) => waiting.push({ n, resolve })) : Promise.resolve(seen[n])
  }
}

/** Answers with a stream of these chunks. */
export function streaming(chunks: readonly string[]): Answerer {
  return (response) => begun(response).end(eventsOf(chunks))
}

/** Answers with these bytes, as they are. */
export function raw(text: string): Answerer {
  return (response) => begun(response).end(text)
}

/** Begins a stream of events. */
export function begun(response: http.ServerResponse): http.ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

/** Refuses the question. */
export function refusing({ status, body }: Refusal, headers: Readonly<Record<string, string>> = {}): Answerer {
  return (response) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}
