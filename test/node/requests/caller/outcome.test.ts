import test from 'brittle'
import fc from 'fast-check'
import type { LedgerChange } from '../../../../src/ports/ledger.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { RequestOutcome } from '../../../../src/node/requests/caller/outcome.js'
import type { CallerRecord } from '../../../../src/node/requests/caller/record.js'
import type { CallerOutcome, RequestDeps, RequestMaking } from '../../../../src/node/requests/caller/request-codec.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

const error = new NodeError('TASK_FAILED', 'the agent failed').toBody()
const CHANGE: LedgerChange = { key: 'request/1', value: null }

interface Scene {
  readonly outcome: RequestOutcome
  /** What happened, in order. */
  readonly said: string[]
  /** Outcomes that the record was given. */
  readonly recorded: CallerOutcome[]
  /** Lets the ledger take what it was given, or not. */
  answer(isTaken: boolean): Promise<void>
  /** A reply over a lane is being recorded, or was not. */
  settle(isSettled: boolean): void
}

/** A request that is on record, unless it is a lease; its ledger answers when the test says so. */
function scene(isRecorded = true): Scene {
  const said: string[] = []
  const recorded: CallerOutcome[] = []
  const writes: ((isTaken: boolean) => void)[] = []
  let isSettled = false
  const record = {
    current: { status: 'pending', isRepeatable: true },
    get isSettled() {
      return isSettled
    },
    ended: (one: CallerOutcome) => {
      if (isSettled) return []
      recorded.push(one)
      isSettled = one.status !== 'unknown'
      return [CHANGE]
    }
  } as unknown as CallerRecord
  const asking = {
    sender: { agentId: 'operator', nodeId: actor('here').id },
    mayQueue: true,
    capability: null,
    input: null
  }
  const names = { requestId: 'req_1', attempt: 1, correlationId: 'thr_1', taskId: 'task_1' }
  const task = (what: string) => () => void said.push(what)
  const deps = {
    clock: new ManualClock(),
    tasks: { complete: task('shown completed'), fail: task('shown failed'), unknown: task('shown unknown') },
    ends: { add: task('waits for the ledger') },
    record: (changes: readonly LedgerChange[]) =>
      changes.length === 0 ? Promise.resolve(true) : new Promise<boolean>((resolve) => writes.push(resolve))
  } as unknown as RequestDeps
  const making = { asking, names, record: isRecorded ? record : null } as unknown as RequestMaking
  const outcome = new RequestOutcome(deps, making, {
    onGivenUp: task('given up'),
    onEnd: task('over'),
    onUnwanted: task('unwanted')
  })
  void outcome.answer.then((one) => said.push(`answer ${one.outcome}`))
  const answer = async (isTaken: boolean): Promise<void> => {
    for (const write of writes.splice(0)) write(isTaken)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { outcome, said, recorded, answer, settle: (now) => void (isSettled = now) }
}

test('a result is shown and reported when it is durable, not before', async (t) => {
  const { outcome, said, answer } = scene()
  void outcome.finish({ outcome: 'COMPLETED', result: 1 })
  await Promise.resolve()
  t.alike(said, ['over'])
  t.ok(outcome.isOver)
  await answer(true)
  t.alike(said, ['over', 'shown completed', 'answer COMPLETED'])
})

test('a waiting caller gets a result that the ledger refuses; it is shown when the ledger accepts it', async (t) => {
  const { outcome, said, answer } = scene()
  void outcome.finish({ outcome: 'COMPLETED', result: 1 })
  await answer(false)
  t.alike(said, ['over', 'waits for the ledger', 'answer COMPLETED'])
})

test('a cancellation is shown at once, and its peer is to forget the request', async (t) => {
  const { outcome, said, answer } = scene()
  outcome.cancel()
  t.alike(said, ['over', 'unwanted', 'shown failed'])
  await answer(true)
  t.alike(said.at(-1), 'answer FAILED')
  t.is(outcome.failure?.code, 'CANCELED')
})

test('a request that is to fail while a reply is being recorded ends by the reply, and by the failure when that is not recorded', async (t) => {
  const { outcome, said, answer, settle } = scene()
  settle(true)
  outcome.fail(error)
  t.alike(said, [], 'the reply is about to end it')
  t.is(outcome.failure, error)
  settle(false)
  outcome.notRecorded()
  await answer(true)
  t.alike(said, ['over', 'unwanted', 'shown failed', 'answer FAILED'])
})

test('an unknown outcome is reported once, and a late answer still counts', async (t) => {
  const { outcome, said, recorded, answer } = scene()
  outcome.unknown(error, 7)
  await answer(true)
  t.alike(said, ['shown unknown', 'given up', 'answer UNKNOWN'])
  t.alike([outcome.isOver, outcome.hasGivenUp, outcome.mayWait], [false, true, false])
  outcome.unknown(error, null)
  await answer(true)
  t.alike(said.slice(3), ['shown unknown'])
  t.is(recorded[1]?.status === 'unknown' ? recorded[1].error.isFinal : undefined, true, 'its peer never will know')
  void outcome.finish({ outcome: 'COMPLETED', result: 1 })
  await answer(true)
  t.alike(said.slice(4), ['over', 'shown completed'])
})

test('a request ends once and its caller is answered once, for any ends', async (t) => {
  const step = fc.constantFrom('finish', 'fail', 'cancel', 'unknown', 'abandon', 'notRecorded', 'taken', 'refused')
  await holds(
    t,
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.boolean(), async (steps, isRecorded) => {
      const { outcome, said, answer } = scene(isRecorded)
      for (const one of steps) {
        if (one === 'finish') void outcome.finish({ outcome: 'COMPLETED', result: 1 })
        if (one === 'fail') outcome.fail(error)
        if (one === 'cancel') outcome.cancel()
        if (one === 'unknown') outcome.unknown(error, null)
        if (one === 'abandon') outcome.abandon()
        if (one === 'notRecorded') outcome.notRecorded()
        if (one === 'taken' || one === 'refused') await answer(one === 'taken')
      }
      const isEnded = outcome.isOver || outcome.hasGivenUp
      await answer(true)
      const count = (what: string): number => said.filter((line) => line.startsWith(what)).length
      const ends = count('over')
      const isRight = ends === (outcome.isOver ? 1 : 0) && count('answer') === (isEnded ? 1 : 0)
      if (!isRight) throw new Error(said.join(', '))
      return true
    })
  )
})
