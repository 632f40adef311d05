import test, { type Assert } from 'brittle'
import { callRemote, COMPARE_MS } from '../../../../src/adapters/a2a/remote/remote-call.js'
import type { RemoteLink } from '../../../../src/adapters/a2a/remote/remote-client.js'
import type { RemoteEvent } from '../../../../src/adapters/a2a/remote/remote-task.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'
import { ManualClock } from '../../../support/manual-clock.js'

const ABOUT = { taskId: 't', contextId: 'c' }
const MESSAGE = { parts: [{ text: 'go' }], messageId: 'm', skill: null, taskId: null, contextId: null }

/** A call of an agent that streams its end; `get` answers how its task stands. */
function streamedCall(
  events: readonly RemoteEvent[],
  get: RemoteLink['get']
): { readonly clock: ManualClock; readonly faults: string[]; readonly outcome: Promise<AgentOutcome> } {
  const clock = new ManualClock()
  const faults: string[] = []
  const link: RemoteLink = {
    send: async function* () {
      yield* events
    },
    follow: null,
    get,
    cancel: () => Promise.resolve()
  }
  const onFault = ({ message }: Error): void => void faults.push(message)
  const run = { signal: new AbortController().signal, progress: () => {} }
  const outcome = callRemote({ agent: 'far', link, clock, maxOutputBytes: 10_000, onFault }, MESSAGE, run)
  return { clock, faults, outcome }
}

test('an answer that a stream brought is not lost when its agent never says how the task stands', async (t: Assert) => {
  let asked = (): void => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const events: readonly RemoteEvent[] = [
    {
      type: 'artifact',
      taskId: 't',
      artifact: { artifactId: 'a', parts: [{ text: 'done' }] },
      append: false,
      lastChunk: true
    },
    { type: 'status', ...ABOUT, state: 'completed', message: null }
  ]
  const { clock, faults, outcome } = streamedCall(events, (_id, signal) => {
    asked()
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('given up'))))
  })
  await isAsked
  clock.advance(COMPARE_MS)
  t.alike(await outcome, { ok: true, result: 'done' })
  t.ok(/could not be compared/.test(faults[0] ?? ''), faults[0])
})

test('the words of a task that its agent still calls working are no result of its streamed end', async (t: Assert) => {
  const end: RemoteEvent = { type: 'status', ...ABOUT, state: 'completed', message: null }
  const message = { id: 'w', parts: [{ text: 'thinking' }] }
  const late = streamedCall([end], () =>
    Promise.resolve({ type: 'task', ...ABOUT, state: 'working', message, artifacts: [] })
  )
  t.alike(await late.outcome, { ok: true, result: null })
  const known = streamedCall([end], () =>
    Promise.resolve({ type: 'task', ...ABOUT, state: 'completed', message, artifacts: [] })
  )
  t.alike(await known.outcome, { ok: true, result: 'thinking' })
})
