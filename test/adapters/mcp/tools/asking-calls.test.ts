import test, { type Assert } from 'brittle'
import { AskingCalls, type CallContext } from '../../../../src/adapters/mcp/tools/asking-calls.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { ClientAsk } from '../../../../src/adapters/mcp/tools/client-ask.js'
import type { CallName, Calls, NodeApi } from '../../../../src/ports/node-api.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { failsWith } from '../../../support/fails.js'
import { toolContext } from '../../../support/tool-context.js'

const MINUTE = 60_000

/** Calls of agents that ask one question each, by clients that are asked between two requests. */
class Scene {
  readonly clock = new ManualClock()
  /** Calls under way, in their order. */
  readonly open: CallContext[] = []
  /** Questions with an answer. */
  readonly answered: string[] = []
  readonly calls: AskingCalls
  /** Questions of a call, one after the other. */
  rounds = 1
  failure: Error | null = null
  readonly #ends = new Map<string, () => void>()
  #ids = 0

  constructor() {
    this.calls = new AskingCalls({ clock: this.clock, newId: () => `state_${++this.#ids}` })
  }

  /** A request of a client, with the state and the answer that it brings. */
  async request(caller: string, state?: unknown, answers = state === undefined ? [] : ['name']): Promise<unknown> {
    const context = toolContext()
    const client = {
      ...context.client,
      kinds: ['form'] as const,
      answer: (name: string) =>
        (answers.includes(name) ? { kind: 'elicit', action: 'accept', content: {} } : undefined) as never,
      state
    }
    return await this.calls.of(caller)(this.#api(), { ...context, client }, (followed) => this.#start(followed))
  }

  #api(): NodeApi {
    const call = (_name: CallName, { id }: Calls['message.answer']['params']): Promise<unknown> => {
      this.answered.push(id)
      this.#ends.get(id)?.()
      return Promise.resolve({ id })
    }
    return { call } as unknown as NodeApi
  }

  /** A call whose agent asks, and ends at an answer or an abort. */
  #start(followed: CallContext): Promise<unknown> {
    if (this.failure !== null) return Promise.reject(this.failure)
    let rounds = this.rounds
    const id = `ask_${this.open.push(followed)}`
    const question = { agent: 'a', method: 'elicitation/create', params: { message: 'm' }, name: 'name' } as const
    return new Promise((resolve, reject) => {
      this.#ends.set(id, () => {
        if (--rounds === 0) resolve('done')
        else followed.onQuestion?.({ id, ...question })
      })
      followed.onQuestion?.({ id, ...question })
      followed.abortSignal.addEventListener('abort', () => reject(new Error('aborted')))
    })
  }
}

async function parked(scene: Scene, caller: string): Promise<unknown> {
  const asked = await scene.request(caller)
  if (!(asked instanceof ClientAsk)) throw new Error('the client is not asked')
  return asked.state
}

test('a ninth call of a caller without answers ends its oldest, and none of another caller', async (t: Assert) => {
  const scene = new Scene()
  const other = await parked(scene, 'other')
  const states: unknown[] = []
  for (let i = 0; i < 8; i++) states.push(await parked(scene, 'one'))
  const ended = (): readonly number[] => scene.open.flatMap(({ abortSignal }, at) => (abortSignal.aborted ? [at] : []))
  t.alike(ended(), [])
  const newest = await parked(scene, 'one')
  t.alike(ended(), [1])
  await failsWith(t, 'CANCELED', () => scene.request('one', states[0]))
  await failsWith(t, 'CANCELED', () => scene.request('one', other))
  t.is(await scene.request('one', newest), 'done')
  t.alike(scene.answered, ['ask_10'])
  await failsWith(t, 'CANCELED', () => scene.request('one', newest))
  scene.calls.close()
})

test('a call without an answer ends after ten minutes, and at the end of the service', async (t: Assert) => {
  const scene = new Scene()
  await parked(scene, 'one')
  scene.clock.advance(10 * MINUTE - 1)
  const [first] = scene.open
  t.absent(first?.abortSignal.aborted)
  scene.clock.advance(1)
  t.ok(first?.abortSignal.aborted)
  await parked(scene, 'one')
  scene.calls.close()
  t.ok(scene.open.at(-1)?.abortSignal.aborted)
})

test('an answer that comes with the first request is given to the question of its name, once', async (t: Assert) => {
  const scene = new Scene()
  t.is(await scene.request('one', undefined, ['name', 'other']), 'done')
  t.alike(scene.answered, ['ask_1'])
  t.ok((await scene.request('one', undefined, ['other'])) instanceof ClientAsk)
  scene.rounds = 2
  const second = scene.request('one', undefined, ['name'])
  await new Promise((resolve) => setImmediate(resolve))
  scene.clock.advance(100)
  t.ok((await second) instanceof ClientAsk, 'the second question is asked')
  t.alike(scene.answered, ['ask_1', 'ask_3'])
  scene.calls.close()
})

test('a failure that names an ability asks for it where the client has not declared it', async (t: Assert) => {
  const scene = new Scene()
  scene.failure = new NodeError('TASK_FAILED', 'no model', { data: { missing: ['form', 'sampling', 'else'] } })
  const asked = await scene.request('one')
  t.alike(asked instanceof ClientAsk && Object.keys(asked.requests), ['sampling'])
  for (const missing of [['form'], 'sampling', undefined]) {
    scene.failure = new NodeError('TASK_FAILED', 'no', { data: { missing } })
    await failsWith(t, 'TASK_FAILED', () => scene.request('one'))
  }
})
