import test, { type Assert } from 'brittle'
import { RunSignal } from '../../../../src/adapters/mcp/server/run-signal.js'

test('a signal read before or after gives the same: of its caller, and of its own end', (t: Assert) => {
  for (const isEarly of [true, false])
    for (const isCaller of [true, false]) {
      const caller = new AbortController()
      const run = new RunSignal(caller.signal)
      const early = isEarly ? run.signal : null
      t.absent(early?.aborted)
      if (isCaller) caller.abort('gone')
      else run.abort('gone')
      t.alike([run.signal.aborted, run.signal.reason], [true, 'gone'])
      if (early !== null) t.is(early, run.signal)
      run.abort('again')
      t.is(run.signal.reason, 'gone')
    }
})

test('a run that is over ignores its caller', (t: Assert) => {
  const caller = new AbortController()
  const run = new RunSignal(caller.signal)
  const { signal } = run
  run.release()
  caller.abort()
  t.absent(signal.aborted)
})
