import http from 'node:http'
import type { AddressInfo } from 'node:net'
import * as modern from '@a2a-js/sdk/server'
import * as legacy from 'a2a03/server'
import type { Assert } from 'brittle'

/** What the script of a test agent may do in one turn. */
export interface Turn {
  /** All texts of the message. */
  readonly text: string
  /** Of the message. */
  readonly messageId: string
  readonly metadata: unknown
  readonly taskId: string
  /** Is it a further turn of a task? */
  readonly isFurther: boolean
  /** Resolves when somebody wants the task canceled. */
  readonly canceled: Promise<void>
  say(text: string): void
  chunk(id: string, text: string, append?: boolean): void
  data(id: string, value: unknown): void
  end(state: EndState, text?: string): void
  /** Instead of a task: it must be the only thing done. */
  answer(text: string): void
}

type EndState = 'completed' | 'failed' | 'rejected' | 'canceled' | 'input-required' | 'auth-required'

/** What a test agent does with a message; null: it answers without a task. */
export type Script = (turn: Turn) => Promise<void> | void

/** A server of the official library on loopback. */
export interface RemoteServer {
  readonly url: string
  readonly cardUrl: string
  readonly host: string
  /** What is served as the card from then on; in place of the library's own. */
  card: Record<string, unknown>
  /** Methods of the requests so far, with the headers of each. */
  readonly requests: { method: string; headers: http.IncomingHttpHeaders; body: Record<string, unknown> }[]
  /** Ends the connections of all streams that are open. */
  cut(): void
  close(): Promise<void>
}

const SKILLS = [
  { id: 'talk', name: 'Talk', description: 'Talks.', tags: ['words'], examples: ['Say hello'] },
  { id: 'sum', name: 'Sum', description: 'Sums up.', tags: [] }
]
const STATES = [
  '',
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input-required',
  'rejected',
  'auth-required'
]

/** Starts one; `direct`: it answers with a message instead of a task. */
export async function remoteServer(
  t: Pick<Assert, 'teardown'>,
  version: '1.0' | '0.3',
  script: Script,
  { direct = false, streaming = true }: { direct?: boolean; streaming?: boolean } = {}
): Promise<RemoteServer> {
  const server = http.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = `http://${host}`
  const open = new Set<http.ServerResponse>()
  const card = cardOf(version, url, streaming)
  const handle = version === '1.0' ? modernHandler(card, script, direct) : legacyHandler(card, script, direct)
  const self: RemoteServer = {
    url,
    cardUrl: `${url}/.well-known/agent-card.json`,
    host,
    card,
    requests: [],
    cut: () => open.forEach((response) => response.destroy()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
  server.on('request', (request, response) => void serve(self, { request, response, handle, open }))
  t.teardown(() => self.close())
  return self
}

type Handle = (body: Record<string, unknown>) => Promise<object | AsyncIterable<object>>

async function serve(
  self: RemoteServer,
  {
    request,
    response,
    handle,
    open
  }: { request: http.IncomingMessage; response: http.ServerResponse; handle: Handle; open: Set<http.ServerResponse> }
): Promise<void> {
  if (request.method === 'GET')
    return void response.setHeader('content-type', 'application/json').end(JSON.stringify(self.card))
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const body = JSON.parse(text) as Record<string, unknown>
  self.requests.push({ method: String(body['method']), headers: request.headers, body })
  const given = await handle(body)
  if (!(Symbol.asyncIterator in given))
    return void response.setHeader('content-type', 'application/json').end(JSON.stringify(given))
  response.setHeader('content-type', 'text/event-stream')
  response.flushHeaders()
  open.add(response)
  for await (const one of given) if (!response.destroyed) response.write(`data: ${JSON.stringify(one)}\n\n`)
  open.delete(response)
  response.end()
}

function cardOf(version: string, url: string, streaming: boolean): Record<string, unknown> {
  const about = {
    name: 'Speaker',
    description: 'Speaks.',
    version: '1.2.3',
    skills: SKILLS,
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain']
  }
  if (version === '1.0')
    return {
      ...about,
      capabilities: { streaming },
      supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
      securitySchemes: {},
      securityRequirements: [],
      signatures: []
    }
  return {
    ...about,
    capabilities: { streaming },
    url: `${url}/a2a`,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0'
  }
}

function modernHandler(card: object, script: Script, direct: boolean): Handle {
  const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler, ServerCallContext } = modern
  const part = (text: string): object => ({
    content: { $case: 'text', value: text },
    filename: '',
    mediaType: '',
    metadata: undefined
  })
  const stop = canceler()
  const executor: modern.AgentExecutor = {
    async execute(context, bus) {
      const { taskId, contextId, userMessage } = context
      let count = 0
      const message = (text: string): never =>
        ({
          messageId: `${taskId}-${count++}`,
          role: 2,
          parts: [part(text)],
          taskId,
          contextId,
          extensions: [],
          referenceTaskIds: []
        }) as never
      const status = (state: string, text?: string): never =>
        ({
          taskId,
          contextId,
          status: { state: STATES.indexOf(state), message: text === undefined ? undefined : message(text) }
        }) as never
      const artifact = (id: string, parts: object[], append: boolean): void =>
        bus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: { artifactId: id, name: '', description: '', parts, extensions: [] },
            append,
            lastChunk: false
          } as never)
        )
      if (!direct)
        bus.publish(
          AgentEvent.task(
            (context.task ?? {
              id: taskId,
              contextId,
              status: { state: 1 },
              artifacts: [],
              history: [userMessage]
            }) as never
          )
        )
      await script({
        text: userMessage.parts
          .map((one) => (one.content?.$case === 'text' ? one.content.value : JSON.stringify(one.content?.value)))
          .join('\n'),
        messageId: userMessage.messageId,
        metadata: userMessage.metadata,
        taskId,
        isFurther: context.task !== undefined,
        canceled: stop.when(taskId),
        say: (text) => bus.publish(AgentEvent.statusUpdate(status('working', text))),
        chunk: (id, text, append = false) => artifact(id, [part(text)], append),
        data: (id, value) => artifact(id, [{ ...part(''), content: { $case: 'data', value } }], false),
        end: (state, text) => bus.publish(AgentEvent.statusUpdate(status(state, text))),
        answer: (text) => bus.publish(AgentEvent.message(message(text)))
      })
      bus.finished()
    },
    async cancelTask(taskId, bus) {
      stop.now(taskId)
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status: { state: 5 } } as never))
    }
  }
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card as never, new InMemoryTaskStore(), executor)
  )
  return (body) => handler.handle(body, new ServerCallContext({ requestedVersion: '1.0' })) as never
}

function legacyHandler(card: object, script: Script, direct: boolean): Handle {
  const { DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler } = legacy
  const part = (text: string): object => ({ kind: 'text', text })
  const stop = canceler()
  const executor: legacy.AgentExecutor = {
    async execute({ taskId, contextId, userMessage, task }, bus) {
      let count = 0
      const message = (text: string): object => ({
        kind: 'message',
        messageId: `${taskId}-${count++}`,
        role: 'agent',
        parts: [part(text)],
        taskId,
        contextId
      })
      const status = (state: string, text?: string): never =>
        ({
          kind: 'status-update',
          taskId,
          contextId,
          final: !['submitted', 'working'].includes(state),
          status: { state, ...(text === undefined ? {} : { message: message(text) }) }
        }) as never
      const artifact = (id: string, parts: object[], append: boolean): void =>
        bus.publish({
          kind: 'artifact-update',
          taskId,
          contextId,
          artifact: { artifactId: id, parts },
          append
        } as never)
      if (!direct && task === undefined)
        bus.publish({
          kind: 'task',
          id: taskId,
          contextId,
          status: { state: 'submitted' },
          history: [userMessage]
        } as never)
      await script({
        text: userMessage.parts.map((one) => (one.kind === 'text' ? one.text : JSON.stringify(one))).join('\n'),
        messageId: userMessage.messageId,
        metadata: userMessage.metadata,
        taskId,
        isFurther: task !== undefined,
        canceled: stop.when(taskId),
        say: (text) => bus.publish(status('working', text)),
        chunk: (id, text, append = false) => artifact(id, [part(text)], append),
        data: (id, value) => artifact(id, [{ kind: 'data', data: value }], false),
        end: (state, text) => bus.publish(status(state, text)),
        answer: (text) => bus.publish(message(text) as never)
      })
      bus.finished()
    },
    async cancelTask(taskId, bus) {
      stop.now(taskId)
      bus.publish({ kind: 'status-update', taskId, contextId: '', final: true, status: { state: 'canceled' } } as never)
    }
  }
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card as never, new InMemoryTaskStore(), executor)
  )
  return (body) => handler.handle(body) as never
}

function canceler(): { when(id: string): Promise<void>; now(id: string): void } {
  const waiting = new Map<string, () => void>()
  return { when: (id) => new Promise((resolve) => void waiting.set(id, resolve)), now: (id) => waiting.get(id)?.() }
}
