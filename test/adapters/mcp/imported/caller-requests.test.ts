import path from 'node:path'
import type { Client } from '@modelcontextprotocol/client'
import test, { type Assert } from 'brittle'
import type { AgentLogLine, Question, QuestionAnswer, QuestionKind } from '../../../../src/domain/task/question.js'
import type { RunCaller } from '../../../../src/ports/agent-runtime.js'
import { CallerRequests } from '../../../../src/adapters/mcp/imported/caller-requests.js'
import { recordedRun, type RecordedRun } from '../../../support/agents/task.js'
import { type ImportedScene, importedScene } from '../../../support/mcp/imported-scene.js'
import { ROOT } from '../../../support/nodes.js'

const SCRIPT = path.join(ROOT, 'test/support/mcp/asking-server.mjs')

/** A caller whose person takes its time. */
class Caller implements RunCaller {
  readonly logLevel = 'debug'
  readonly asked: Question[] = []
  readonly lines: AgentLogLine[] = []
  #give: (answer: QuestionAnswer) => void = () => {}
  #onAsked: () => void = () => {}
  readonly first = new Promise<void>((resolve) => (this.#onAsked = resolve))

  constructor(readonly takes: readonly QuestionKind[] = ['form']) {}

  isNeeded: () => boolean = () => false

  ask(question: Question, isNeeded = (): boolean => false): Promise<QuestionAnswer> {
    this.isNeeded = isNeeded
    this.asked.push(question)
    this.#onAsked()
    return new Promise((resolve) => (this.#give = resolve))
  }

  log(line: AgentLogLine): void {
    this.lines.push(line)
  }

  answer(name: string): void {
    this.#give({ ok: true, result: { action: 'accept', content: { name } } })
  }
}

function runOf(caller: Caller): RecordedRun {
  return Object.assign(recordedRun(), { caller })
}

async function asking(t: Assert, era: 'old' | 'new'): Promise<ImportedScene> {
  const scene = await importedScene(t, [
    {
      name: era,
      plan: { tools: [] },
      address: { kind: 'stdio', program: { command: [process.execPath, SCRIPT, era], env: {}, cwd: ROOT } }
    }
  ])
  await scene.ready(era)
  return scene
}

test('a question of a program with several calls under way is refused, and then its calls run one at a time', async (t: Assert) => {
  const scene = await asking(t, 'old')
  const [first, second] = [new Caller(), new Caller()]
  const one = scene.call('old', 'form', {}, runOf(first))
  await first.first
  const two = await scene.call('old', 'form', {}, runOf(second))
  t.ok(!two.ok && /several calls are under way/.test(two.message))
  t.is(second.asked.length, 0, 'no other caller sees it')
  const [third, fourth] = [new Caller(), new Caller()]
  const later = [scene.call('old', 'form', {}, runOf(third)), scene.call('old', 'form', {}, runOf(fourth))]
  first.answer('one')
  t.alike(await one, { ok: true, result: { action: 'accept', content: { name: 'one' } } })
  await third.first
  t.is(fourth.asked.length, 0, 'the second waits for the first')
  t.ok(third.isNeeded(), 'an unanswered question of the first is known to hold it up')
  third.answer('three')
  await fourth.first
  t.absent(fourth.isNeeded())
  fourth.answer('four')
  const results = await Promise.all(later)
  t.alike(
    results.map((outcome) => outcome.ok && (outcome.result as { content: unknown }).content),
    [{ name: 'three' }, { name: 'four' }]
  )
})

test('a caller is not asked for an ability that it lacks, in either protocol', async (t: Assert) => {
  for (const era of ['old', 'new'] as const) {
    const scene = await asking(t, era)
    const caller = new Caller(['form'])
    const model = await scene.call(era, 'model', {}, runOf(caller))
    t.ok(!model.ok, `${era}: no model`)
    const nobody = await scene.call(era, 'form')
    t.ok(!nobody.ok, `${era}: a run without a caller`)
    t.is(caller.asked.length, 0)
  }
})

test('an aborted call that waits for its turn ends at once', async (t: Assert) => {
  const scene = await asking(t, 'old')
  const [first, second, third] = [new Caller(), new Caller(), new Caller()]
  const one = scene.call('old', 'form', {}, runOf(first))
  await first.first
  await scene.call('old', 'form', {}, runOf(second))
  const run = runOf(third)
  const waiting = scene.call('old', 'form', {}, run)
  run.abort()
  const aborted = await waiting
  t.ok(!aborted.ok && aborted.code === 'CANCELED')
  first.answer('one')
  t.ok((await one).ok)
})

/** A client of the library whose server is the test. */
class FakeClient {
  readonly handlers = new Map<string, (request: { readonly params: unknown }) => Promise<unknown>>()
  readonly levels: string[] = []
  refusesLevels = false

  setRequestHandler(method: string, handler: (request: { readonly params: unknown }) => Promise<unknown>): void {
    this.handlers.set(method, handler)
  }

  log: (message: { readonly params: unknown }) => void = () => {}

  setNotificationHandler(_method: string, handler: (message: { readonly params: unknown }) => void): void {
    this.log = handler
  }

  getServerCapabilities(): object {
    return { logging: {} }
  }

  setLoggingLevel(level: string): Promise<void> {
    this.levels.push(level)
    return this.refusesLevels ? Promise.reject(new Error('not now')) : Promise.resolve()
  }

  ask(message: string): Promise<unknown> {
    const params = { message, requestedSchema: { type: 'object', properties: {} } }
    return this.handlers.get('elicitation/create')?.({ params }) ?? Promise.reject(new Error('no handler'))
  }
}

test('a question that may belong to a reading goes to no caller of a tool', async (t: Assert) => {
  const [requests, client, caller] = [new CallerRequests(), new FakeClient(), new Caller()]
  requests.serve(client as unknown as Client)
  const { signal } = new AbortController()
  await requests.during({}, { caller, signal }, () =>
    requests.beside(async () => await t.exception(client.ask('Whose?'), /several calls are under way/))
  )
  await requests.beside(async () => await t.exception(client.ask('Whose?'), /no client that answers/))
  t.is(caller.asked.length, 0)
  const asked = requests.during({}, { caller, signal }, () => client.ask('Yours?'))
  await caller.first
  caller.answer('mine')
  t.alike(await asked, { action: 'accept', content: { name: 'mine' } })
})

test('a level of log lines that a server refused is asked for again', async (t: Assert) => {
  const [requests, client] = [new CallerRequests(), new FakeClient()]
  const want = (level: 'debug' | 'error'): Promise<void> => requests.wantLog(client as unknown as Client, level)
  client.refusesLevels = true
  await want('error')
  client.refusesLevels = false
  for (const level of ['error', 'error', 'debug'] as const) await want(level)
  t.alike(client.levels, ['error', 'error', 'debug'])
})

test('a log line that may belong to several calls reaches no caller, and is counted', async (t: Assert) => {
  let dropped = 0
  const [requests, client] = [new CallerRequests(() => dropped++), new FakeClient()]
  const [one, other] = [new Caller(), new Caller()]
  requests.serve(client as unknown as Client)
  const { signal } = new AbortController()
  const line = { params: { level: 'info', data: 'secret' } }
  await requests.during({}, { caller: one, signal }, async () => {
    client.log(line)
    await requests.during({}, { caller: other, signal }, () => Promise.resolve(client.log(line)))
  })
  client.log(line)
  t.alike([one.lines.length, other.lines.length, dropped], [1, 0, 1])
})
