import test, { type Assert } from 'brittle'
import type { AgentLogLine, Question, QuestionAnswer } from '../../../../src/domain/task/question.js'
import type { RunCaller } from '../../../../src/ports/agent-runtime.js'
import { MAX_SUSPENDED_OF_CALLER } from '../../../../src/node/agents/agent-queue.js'
import { CallerQuestions, type QuestionListener } from '../../../../src/node/requests/caller/questions.js'
import type { FakeAgent } from '../../../support/fake-agents.js'
import { requestScene } from '../../../support/request-scene.js'

const FORM: Question = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Which?',
    requestedSchema: { type: 'object', properties: { a: { type: 'string' } } }
  }
}
const ACCEPTED: QuestionAnswer = { ok: true, result: { action: 'accept', content: { a: 'x' } } }

/** A caller that keeps questions and log lines, and answers when the test does. */
class Listener implements QuestionListener {
  readonly takes = ['form', 'roots'] as const
  readonly logLevel = 'info'
  readonly asked: Question[] = []
  readonly lines: AgentLogLine[] = []
  readonly #answers: ((answer: QuestionAnswer) => void)[] = []

  onQuestion(question: Question): Promise<QuestionAnswer> {
    this.asked.push(question)
    return new Promise((resolve) => this.#answers.push(resolve))
  }

  onLog(line: AgentLogLine): void {
    this.lines.push(line)
  }

  answer(answer = ACCEPTED): void {
    this.#answers.shift()?.(answer)
  }
}

function callerOf(agent: FakeAgent): RunCaller {
  const caller = agent.open[0]?.run.caller
  if (caller === undefined) throw new Error('the run has no caller')
  return caller
}

test('a question of an agent reaches its caller once over a link that breaks, and the answer comes back', async (t: Assert) => {
  const { world, here, peer, agent, ask } = await requestScene(t, { timeoutMs: 600_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  const caller = callerOf(agent)
  t.alike(caller.takes, ['form', 'roots'])
  world.net.disconnect(here.id, peer.id)
  const answer = caller.ask(FORM)
  await world.settle()
  t.is(listener.asked.length, 0, 'it is lost')
  await world.link(here, peer)
  await world.pass(20_000, 1000)
  t.alike(listener.asked, [FORM], 'it is repeated, and passed on once')
  world.net.disconnect(here.id, peer.id)
  listener.answer()
  await world.settle()
  await world.link(here, peer)
  await world.pass(70_000, 1000)
  t.alike(await answer, ACCEPTED, 'a lost answer is sent again')
  t.is(listener.asked.length, 1)
})

test('a caller is asked nothing that it does not answer, and an earlier build nothing at all', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  const url = {
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Go', url: 'https://example.org/' }
  } as const
  t.absent((await callerOf(agent).ask(url)).ok)
  t.absent((await callerOf(agent).ask({ ...FORM, params: { message: 'x'.repeat(70_000) } })).ok)
  t.is(listener.asked.length, 0)
  agent.finish()
  await world.settle()
  await ask()
  await world.settle()
  t.is(agent.open[0]?.run.caller, undefined)
})

test('questions of one request are bounded, and end with it', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  const asked = await ask({ questions: listener })
  await world.settle()
  const caller = callerOf(agent)
  const answers = Array.from({ length: 20 }, async () => await caller.ask(FORM))
  await world.settle()
  t.is(listener.asked.length, 8)
  t.is((await Promise.all(answers.slice(8))).filter(({ ok }) => ok).length, 0)
  agent.finish()
  await asked.answer
  t.is((await Promise.all(answers)).filter(({ ok }) => ok).length, 0, 'none waits after the end')
  listener.answer()
  await world.settle()
  t.is(agent.open.length, 0, 'an answer after the end does nothing')
})

test('at most 64 questions of a request reach its caller', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  let answered = 0
  for (let i = 0; i < 70; i++) {
    const answer = callerOf(agent).ask(FORM)
    await world.settle()
    listener.answer()
    if ((await answer).ok) answered++
  }
  t.alike([listener.asked.length, answered], [64, 64])
})

test('log lines of an agent reach a caller that wants their level, within a rate', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  const caller = callerOf(agent)
  caller.log({ level: 'debug', data: 'small' })
  caller.log({ level: 'warning', data: { disk: 'full' }, logger: 'fs' })
  caller.log({ level: 'error', data: 'x'.repeat(9000) })
  await world.settle()
  t.alike(listener.lines, [{ level: 'warning', data: { disk: 'full' }, logger: 'fs' }])
  for (let i = 0; i < 500; i++) caller.log({ level: 'info', data: i })
  await world.settle()
  t.ok(listener.lines.length <= 101, `${listener.lines.length} lines`)
})

test('a node that asks too much, or gives a number to another question, gets a refusal or a new answer', async (t: Assert) => {
  const { world, here } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  const sent: { readonly id: number }[] = []
  const answers = new CallerQuestions(here.core.deps.clock, listener, (body) => void sent.push(body))
  for (let id = 1; id <= 20; id++) answers.ask({ id, ...FORM }, true)
  t.is(listener.asked.length, 8, 'eight wait')
  t.is(sent.length, 12, 'the others are refused at once')
  for (let i = 0; i < 8; i++) listener.answer()
  await world.settle()
  answers.ask({ id: 1, ...FORM }, true)
  t.is(listener.asked.length, 8, 'a repeated question is answered from memory')
  for (let i = 0; i < 200; i++) answers.ask({ id: 1, ...FORM }, true)
  t.is(sent.length, 20 + 32, 'but not at any rate')
  answers.ask({ id: 1, ...FORM, params: { ...FORM.params, message: 'Another?' } }, true)
  t.is(listener.asked.length, 9, 'another question of that number is asked')
})

test('content of an answer that does not fit its form is refused with a reason', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 10_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  const requestedSchema = {
    type: 'object',
    properties: { a: { type: 'string', format: 'email' }, b: { type: 'array', items: { type: 'integer' } } },
    required: ['a']
  }
  const answered = async (result: Readonly<Record<string, unknown>>, schema: object): Promise<QuestionAnswer> => {
    const answer = callerOf(agent).ask({ ...FORM, params: { ...FORM.params, requestedSchema: schema } })
    await world.settle()
    listener.answer({ ok: true, result })
    return await answer
  }
  const refused = async (content: object | undefined, schema: object = requestedSchema): Promise<string> => {
    const answer = await answered({ action: 'accept', ...(content === undefined ? {} : { content }) }, schema)
    return answer.ok ? 'it is accepted' : answer.message
  }
  t.ok((await answered({ action: 'accept', content: { a: 'x', b: [1] } }, requestedSchema)).ok)
  t.ok((await answered({ action: 'decline' }, requestedSchema)).ok)
  t.ok((await refused({ a: 7 })).includes('does not fit the form: /a must be string'))
  t.ok((await refused(undefined)).includes('must have "a"'))
  const properties = Object.fromEntries(Array.from({ length: 128 }, (_, i) => [`p${i}`, { type: 'string' }]))
  const wide = { type: 'object', properties, additionalProperties: { type: 'array' } }
  t.ok((await refused({ b: Array(30_000).fill(1) }, wide)).includes('more parts than can be checked'))
  t.ok((await refused({ a: 'x' }, { type: 'object', properties: { a: { type: 'no type' } } })).includes('no usable'))
})

test('other work of an agent runs while questions wait, and an answered run goes on when it has a slot again', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 600_000 })
  const listener = new Listener()
  await ask({ questions: listener })
  await world.settle()
  let answer: QuestionAnswer | null = null
  void callerOf(agent)
    .ask(FORM)
    .then((given) => (answer = given))
  await world.settle()
  for (let i = 0; i < 2; i++) await ask({ mayQueue: true })
  await world.settle()
  t.is(agent.tasks.length, 2, 'one other run takes the slot')
  listener.answer()
  await world.settle()
  t.is(answer, null, 'no more runs work than there are slots')
  agent.open[1]?.end({ ok: true, result: null })
  await world.settle()
  t.alike(answer, ACCEPTED)
  t.is(agent.tasks.length, 2, 'it goes on before work that has not begun')
  agent.finish()
  await world.settle()
  t.is(agent.tasks.length, 3)
})

test('of many runs that ask, the last ones hold their slot, and an unanswered question of theirs ends after a minute', async (t: Assert) => {
  const { world, agent, ask } = await requestScene(t, { timeoutMs: 600_000 })
  const answers: (QuestionAnswer | null)[] = []
  const ends = (): number => answers.filter((one) => one !== null).length
  for (let i = 0; i <= MAX_SUSPENDED_OF_CALLER; i++) {
    await ask({ questions: new Listener(), mayQueue: true })
    await world.settle()
    answers.push(null)
    void agent.open[i]?.run.caller?.ask(FORM).then((given) => (answers[i] = given))
  }
  await world.pass(200_000, 1000)
  t.alike([agent.tasks.length, ends()], [MAX_SUSPENDED_OF_CALLER + 1, 0], 'without other work all wait')
  await ask({ mayQueue: true })
  await world.pass(61_000, 1000)
  t.alike([ends(), answers[MAX_SUSPENDED_OF_CALLER]?.ok], [1, false])
  agent.open.at(-1)?.end({ ok: true, result: null })
  await world.settle()
  t.is(agent.tasks.length, MAX_SUSPENDED_OF_CALLER + 2, 'the other work runs')
})
