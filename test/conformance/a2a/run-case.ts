import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../../src/kit/json.js'
import {
  type Binding,
  type CaseAnswer,
  type CaseStream,
  eventsIn,
  headersOf,
  isStream,
  readAnswer,
  type Target
} from './bindings.js'
import type { Case, Step, StreamWants } from './cases.js'
import { faultOf, faultsOf, valuesAt } from './matches.js'
import { streamFaults } from './streams.js'
import type { Place, World } from './world.js'

/** What became of a case, or of a check of a client. */
export interface Verdict {
  readonly state: 'passed' | 'failed' | 'skipped'
  /** Of a failure and of a skip. */
  readonly why?: string
}

/** Milliseconds that one step may take. */
const STEP_MS = 15_000
/** Between two tries of a step with `until`. */
const POLL_MS = 50

/** Where and how a case runs. */
export interface CaseRun {
  readonly place: Place
  readonly binding: Binding
  readonly world: World
  /** Makes the last answer of a case wrong, to prove that it can fail. */
  readonly alter?: Alteration
  /** Milliseconds that a step waits for what it expects. */
  readonly patienceMs?: number
}

type Events = readonly Readonly<Record<string, unknown>>[]

/** What takes the place of an answer, of events, and of the operations that an agent was asked for. */
interface Alteration {
  answer(given: CaseAnswer): CaseAnswer
  events(given: Events): Events
  asked(given: readonly string[]): readonly string[]
}

const ASIS: Alteration = { answer: (given) => given, events: (given) => given, asked: (given) => given }

interface OpenStream {
  readonly events: AsyncIterator<Readonly<Record<string, unknown>>>
  readonly seen: Readonly<Record<string, unknown>>[]
  readonly abort: AbortController
}

/** A case under way: the values that its steps kept, and its open streams. */
interface Course extends CaseRun {
  readonly one: Case
  readonly values: Map<string, unknown>
  readonly streams: Map<string, OpenStream>
  /** Of this step. */
  readonly altered: Alteration
}

let runs = 0

/** Runs a case. Never rejects: what goes wrong is a failure. */
export async function runCase(one: Case, run: CaseRun): Promise<Verdict> {
  const lacking = Object.entries(one.needs).find(([name, value]) => (run.place.capabilities[name] ?? false) !== value)
  if (lacking !== undefined) return { state: 'skipped', why: `the card has ${lacking[0]}: ${String(!lacking[1])}` }
  const nonce = `${process.pid}-${++runs}`
  const values = new Map<string, unknown>([
    ['nonce', nonce],
    ['peer', `case ${nonce}`],
    ['gate', run.world.gate(nonce)],
    ['hook', run.world.hook(nonce)]
  ])
  const course = { ...run, one, values, streams: new Map<string, OpenStream>() }
  try {
    for (const [at, step] of one.steps.entries()) {
      const [fault] = await doStep(filled(step, values) as Step, {
        ...course,
        altered: at === one.steps.length - 1 ? (run.alter ?? ASIS) : ASIS
      })
      if (fault !== undefined) return { state: 'failed', why: `step ${at + 1}: ${fault}` }
    }
    return { state: 'passed' }
  } catch (error) {
    return { state: 'failed', why: error instanceof Error ? error.message : String(error) }
  } finally {
    for (const { abort } of course.streams.values()) abort.abort()
    run.world.open(nonce)
  }
}

/** A step with the values in place of `{{name}}`. @throws when a name has no value */
function filled(value: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === 'string') {
    const [, whole] = /^\{\{(\w+)\}\}$/.exec(value) ?? []
    const read = (name: string): unknown => {
      if (!values.has(name)) throw new Error(`no step kept ${name}`)
      return values.get(name)
    }
    if (whole !== undefined) return read(whole)
    return value.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => String(read(name)))
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, values))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, values)]))
}

/** Does one step. Resolves with its faults. */
async function doStep(step: Step, course: Course): Promise<string[]> {
  const nonce = String(course.values.get('nonce'))
  if (step.go === true) course.world.open(nonce)
  if (step.peer !== undefined) course.world.teach(nonce, step.peer)
  if (step.close !== undefined) course.streams.get(step.close)?.abort.abort()
  if (step.drain !== undefined) return await drained(step, course)
  if (step.hook === true) return await notified(step, course)
  if (step.asked !== undefined) return askedFaults(step, course.altered.asked(course.world.askedOf(nonce)))
  if (step.raw !== undefined) return await rawStep(step, step.raw, course)
  return step.call === undefined ? [] : await callStep(step, step.call, course)
}

function targetOf(step: Step, { place }: Course, signal: AbortSignal): Target {
  return { url: place.urlOf(step.agent ?? 'acts'), token: place.tokens[step.by], signal }
}

function paramsOf(step: Step): Readonly<Record<string, unknown>> {
  if (step.call !== 'SendMessage' && step.call !== 'SendStreamingMessage') return step.with
  const { task, context } = step.on
  const message = {
    messageId: `m-${process.pid}-${++runs}`,
    role: 'ROLE_USER',
    ...(step.say === undefined ? {} : { parts: [{ text: step.say }] }),
    ...(task === undefined ? {} : { taskId: task }),
    ...(context === undefined ? {} : { contextId: context }),
    ...(step.with['message'] as object | undefined)
  }
  return { ...step.with, message }
}

async function callStep(step: Step, operation: NonNullable<Step['call']>, course: Course): Promise<string[]> {
  const { binding } = course
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(STEP_MS)])
  const target = targetOf(step, course, signal)
  if (operation !== 'SendStreamingMessage' && operation !== 'SubscribeToTask')
    return await answered(step, () => binding.ask(operation, paramsOf(step), target), course)
  const begun = await binding.stream(operation, paramsOf(step), target)
  if ('status' in begun) return await answered(step, () => Promise.resolve(begun), course)
  if (step.fails !== undefined) {
    abort.abort()
    return ['a stream began']
  }
  if (step.open !== undefined) return await opened(step.open, begun, { step, course, abort })
  return streamFaults(course.altered.events(await all(begun)), step.stream ?? {})
}

/** Asks until the answer is as the step waits for, then compares. */
async function answered(step: Step, ask: () => Promise<CaseAnswer>, course: Course): Promise<string[]> {
  const end = Date.now() + (course.patienceMs ?? STEP_MS)
  let answer = await ask()
  while (step.until !== undefined && faultsOf(answer.body, step.until).length > 0 && Date.now() < end) {
    await wait(POLL_MS)
    answer = await ask()
  }
  return answerFaults(step, course.altered.answer(answer), course)
}

function answerFaults(step: Step, answer: CaseAnswer, course: Course): string[] {
  const faults = [
    ...(step.status === undefined ? [] : differs('status', faultOf(answer.status, step.status))),
    ...(step.headers === undefined ? [] : faultsOf(answer.headers, step.headers))
  ]
  const errors = step.fails ?? (answer.error === null ? undefined : step.orFails)
  if (errors !== undefined) {
    faults.push(...(answer.error === null ? ['it did not fail'] : faultsOf(answer.error, errors)))
  } else if (answer.error !== null && step.raw === undefined) {
    faults.push(`it failed: ${answer.status} ${JSON.stringify(answer.error).slice(0, 400)}`)
  } else faults.push(...(step.see === undefined ? [] : faultsOf(answer.body, step.see)))
  if (faults.length === 0) keep(step, errors === undefined ? answer.body : answer.error, course)
  return faults
}

function differs(name: string, fault: string | null): string[] {
  return fault === null ? [] : [`${name} ${fault}`]
}

function keep(step: Step, value: unknown, { values }: Course): void {
  for (const [name, place] of Object.entries(step.keep)) values.set(name, valuesAt(value, place)[0])
}

async function all(stream: CaseStream): Promise<Readonly<Record<string, unknown>>[]> {
  const events = []
  for await (const event of stream) events.push(event)
  return events
}

/** Reads the first event, which names the task, and leaves the stream open. */
async function opened(
  name: string,
  stream: CaseStream,
  { step, course, abort }: { step: Step; course: Course; abort: AbortController }
): Promise<string[]> {
  const events = stream[Symbol.asyncIterator]()
  const { value: first, done } = await events.next()
  if (done === true) return ['the stream is empty']
  course.streams.set(name, { events, seen: [first], abort })
  const taskId = [first['task'], first['statusUpdate'], first['artifactUpdate']].filter(isRecord)[0]
  keep(step, { ...first, taskId: taskId?.['id'] ?? taskId?.['taskId'] }, course)
  return []
}

async function drained(step: Step, { streams, altered }: Course): Promise<string[]> {
  const stream = streams.get(step.drain ?? '')
  if (stream === undefined) throw new Error(`no stream ${step.drain ?? ''} is open`)
  for (let next = await stream.events.next(); next.done !== true; next = await stream.events.next())
    stream.seen.push(next.value)
  const wants: StreamWants = step.stream ?? {}
  const other = wants.endsLike === undefined ? undefined : streams.get(wants.endsLike)?.seen
  return streamFaults(altered.events(stream.seen), wants, other)
}

/** Waits for notifications, up to the final one or the time of a step. */
async function notified(step: Step, { world, values, altered, patienceMs = STEP_MS }: Course): Promise<string[]> {
  const wants = step.stream ?? {}
  const end = Date.now() + patienceMs
  for (;;) {
    const got = await world.notifications(String(values.get('nonce')))
    const faults = streamFaults(got, wants)
    if (faults.length === 0) return streamFaults(altered.events(got), wants)
    if (Date.now() > end) return faults
    await wait(POLL_MS)
  }
}

function askedFaults(step: Step, asked: readonly string[]): string[] {
  const lacking = (step.asked ?? []).filter((name) => !asked.includes(name))
  const wrong = (step.never ?? []).filter((name) => asked.includes(name))
  return [
    ...lacking.map((name) => `the agent was not asked for ${name}, but for ${asked.join(', ') || 'nothing'}`),
    ...wrong.map((name) => `the agent was asked for ${name}`)
  ]
}

async function rawStep(step: Step, raw: NonNullable<Step['raw']>, course: Course): Promise<string[]> {
  const { url, token, signal } = targetOf(step, course, AbortSignal.timeout(STEP_MS))
  const headers = { ...headersOf(token), ...raw.headers }
  const body = raw.text ?? (raw.body === undefined ? null : JSON.stringify(raw.body))
  const response = await fetch(url + raw.path, {
    method: raw.method,
    headers: Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== null),
    body,
    signal
  })
  if (step.stream === undefined) return await answered(step, () => readAnswer(response, (given) => given), course)
  if (!isStream(response)) return [`no stream: ${response.status}`]
  const events = await all(eventsIn(response, (data) => data as Readonly<Record<string, unknown>>))
  return streamFaults(course.altered.events(events), step.stream)
}
