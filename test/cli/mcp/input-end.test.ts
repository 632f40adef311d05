import { PassThrough } from 'node:stream'
import test, { type Assert } from 'brittle'
import { InputEnd } from '../../../src/cli/mcp/input-end.js'
import { ManualClock } from '../../support/manual-clock.js'

interface Scene {
  readonly input: PassThrough
  readonly output: PassThrough
  readonly clock: ManualClock
  readonly end: InputEnd
  /** Answers the open request. */
  answer(): void
  isReached(): boolean
}

/** A client with one open request. */
function scene(): Scene {
  const [input, output, clock] = [new PassThrough(), new PassThrough(), new ManualClock()]
  let [isAnswered, isReached] = [false, false]
  const end = new InputEnd({ clock, client: { input, output }, isAnswered: () => isAnswered })
  void end.reached.then(() => (isReached = true))
  input.resume()
  const answer = (): void => {
    isAnswered = true
    end.check()
  }
  return { input, output, clock, end, answer, isReached: () => isReached }
}

/** The stream's events are over. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('a client that closes its input has ended once its requests have answers', async (t: Assert) => {
  const { input, answer, end, isReached } = scene()
  input.end('{}\n')
  await settled()
  t.is(isReached(), false)
  answer()
  await end.reached
  t.is(isReached(), true)
})

test('a request that never gets its answer keeps a closed input for 5 seconds', async (t: Assert) => {
  const { input, clock, isReached } = scene()
  input.end()
  await settled()
  clock.advance(4999)
  await settled()
  t.is(isReached(), false)
  clock.advance(1)
  await settled()
  t.is(isReached(), true)
})

test('an answer while the input is open is no end', async (t: Assert) => {
  const { input, answer, isReached } = scene()
  answer()
  await settled()
  t.is(isReached(), false)
  input.end()
  await settled()
  t.is(isReached(), true)
})

test('a client that is gone has ended at once, also with open requests', async (t: Assert) => {
  for (const leave of [
    ({ input }: Scene) => input.destroy(),
    ({ input }: Scene) => input.destroy(new Error('reset')),
    ({ output }: Scene) => output.destroy(new Error('EPIPE'))
  ]) {
    const one = scene()
    leave(one)
    await settled()
    t.is(one.isReached(), true, String(leave))
  }
})
