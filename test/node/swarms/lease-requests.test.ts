import test from 'brittle'
import type { RunOutcome } from '../../../src/domain/swarm/machine.js'
import type { Answer, Asking } from '../../../src/node/requests/caller/request-codec.js'
import type { Asked } from '../../../src/node/requests/caller/requests.js'
import { LeaseRequests, type LeaseRequestsDeps, type LeasesOf } from '../../../src/node/swarms/lease-requests.js'
import { failsWith } from '../../support/fails.js'
import { ManualClock } from '../../support/manual-clock.js'

const NODE = 'y'.repeat(52)

test('the request of an expired lease is not recorded over the next lease of its item', async (t) => {
  const sent: Asking[] = []
  const never = new Promise<never>(() => {})
  const requests = {
    ask: (asking: Asking): Promise<Asked> => {
      sent.push(asking)
      return never
    }
  }
  const head = { id: 'swarm_1', deadline: 60_000, request: { goal: 'count' } }
  const recorded: number[] = []
  const swarm = {
    head,
    term: null,
    work: () => ({ capability: 'work', input: null }),
    changes: ({ attempt }: { readonly attempt: number }) => {
      recorded.push(attempt)
      return []
    }
  }
  const deps = { self: NODE, clock: new ManualClock(), requests } as unknown as LeaseRequestsDeps
  const leases = new LeaseRequests(deps, swarm as unknown as LeasesOf)
  const lease = { index: 0, agent: `worker@${'b'.repeat(52)}`, isRepeatable: true, failures: 0 }
  leases.begin({ ...lease, attempt: 1 })
  leases.cancel(0, 1)
  leases.begin({ ...lease, attempt: 2 })
  await Promise.resolve()
  const [expired, next] = sent.map((asking) => asking.lease)
  await failsWith(t, 'CANCELED', () => Promise.resolve().then(() => expired?.changes()))
  t.alike(next?.changes(), [])
  t.alike(recorded, [2])
})

test('a question of an agent fails its item with the question, in each spelling, and is no result', async (t) => {
  const results: readonly (readonly [unknown, RegExp | null])[] = [
    [{ a2a: { state: 'input_required', message: 'Which one?' } }, /input-required\): Which one\?$/],
    [
      { a2a: { state: 'TASK_STATE_AUTH_REQUIRED', message: { parts: [{ text: 'Log in' }] } } },
      /auth-required\): Log in$/
    ],
    [{ a2a: { state: 'inputRequired', message: { choices: [1, 2] } } }, /\{"choices":\[1,2\]\}$/],
    [{ a2a: { state: 'auth-required' } }, /auth-required\): $/],
    [{ a2a: { state: 'completed', message: 'done' } }, null],
    [{ state: 'input-required' }, null]
  ]
  for (const [result, wanted] of results) {
    const answered = Promise.resolve<Answer>({ outcome: 'COMPLETED', result })
    const requests = { ask: () => Promise.resolve({ requestId: 'r', answer: answered }) }
    const ended: RunOutcome[] = []
    const swarm = {
      head: { id: 'swarm_1', deadline: 60_000, request: { goal: 'count' }, stages: [{}] },
      term: null,
      work: () => ({ capability: 'work', input: null }),
      changes: () => [],
      fault: () => null,
      onInput: (input: { readonly outcome?: RunOutcome }) => void (input.outcome && ended.push(input.outcome))
    }
    const deps = { self: NODE, clock: new ManualClock(), requests } as unknown as LeaseRequestsDeps
    const leases = new LeaseRequests(deps, swarm as unknown as LeasesOf)
    leases.begin({ index: 0, agent: `worker@${'b'.repeat(52)}`, isRepeatable: true, failures: 0, attempt: 1 })
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    const [outcome] = ended
    if (wanted === null) t.alike(outcome, { ok: true, result })
    else if (outcome !== undefined && !outcome.ok)
      t.alike([outcome.error.isFinal, wanted.test(outcome.error.message)], [true, true], outcome.error.message)
    else t.fail(`no failure: ${JSON.stringify(outcome)}`)
  }
})
