import test, { type Assert } from 'brittle'
import { AskingCalls, type CallContext } from '../../../../src/adapters/mcp/tools/asking-calls.js'
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
  readonly #ends = new Map<string, () => void>()
  #ids = 0

  constructor() {
    this.calls = new AskingCalls({ clock: this.clock, newId: () => `state_${++this.#ids}` })
  }

  /** A request of a client, with the state and the answer that it brings. */
  async request(caller: string, state?: unknown): Promise<unknown> {
    const context = toolContext()
    const client = {
      ...context.client,
      kinds: ['form'] as const,
      answer: () => (state === undefined ? undefined : { kind: 'elicit', action: 'accept', content: {} }) as never,
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
    const id = `ask_${this.open.push(followed)}`
    followed.onQuestion?.({ id, agent: 'a', method: 'elicitation/create', params: { message: 'm' } })
    return new Promise((resolve, reject) => {
      this.#ends.set(id, () => resolve('done'))
      followed.abortSignal.addEventListener('abort', () => reject(new Error('aborted')))
    })
  }
}

async function parked(scene: Scene, caller: string): Promise<unknown> {
  const asked = await scene.request(caller)
  if (!(asked instanceof ClientAsk)) throw new Error('the client is not asked')
  return asked.state
}

test('a fourth call of a caller without answers ends its oldest, and none of another caller', async (t: Assert) => {
  const scene = new Scene()
  const other = await parked(scene, 'other')
  const states = [await parked(scene, 'one'), await parked(scene, 'one'), await parked(scene, 'one')]
  t.alike(
    scene.open.map(({ abortSignal }) => abortSignal.aborted),
    [false, false, false, false]
  )
  const newest = await parked(scene, 'one')
  t.alike(
    scene.open.map(({ abortSignal }) => abortSignal.aborted),
    [false, true, false, false, false]
  )
  await failsWith(t, 'CANCELED', () => scene.request('one', states[0]))
  await failsWith(t, 'CANCELED', () => scene.request('one', other))
  t.is(await scene.request('one', newest), 'done')
  t.alike(scene.answered, ['ask_5'])
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
