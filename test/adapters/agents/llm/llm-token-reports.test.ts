import test from 'brittle'
import fc from 'fast-check'
import { TokenReports } from '../../../../src/adapters/agents/llm/llm-token-reports.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

interface Report {
  readonly token: string
  readonly turn: number
}

test('reports of tokens lose nothing, keep their order and turn, and come at most every 50 ms', async (t) => {
  const step = fc.record({ text: fc.string(), isNewTurn: fc.boolean(), waitMs: fc.nat(200) })
  const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const clock = new ManualClock()
    const reports: (Report & { at: number })[] = []
    const tokens = new TokenReports(clock, (data) => reports.push({ ...(data as Report), at: clock.monotonic() }))
    const said = new Map<number, string>()
    let turn = 1
    for (const { text, isNewTurn, waitMs } of steps) {
      if (isNewTurn) turn++
      said.set(turn, (said.get(turn) ?? '') + text)
      tokens.push(text, turn)
      clock.advance(waitMs)
    }
    tokens.flush()
    const told = new Map<number, string>()
    for (const { token, turn: of } of reports) told.set(of, (told.get(of) ?? '') + token)
    const isWhole = [...said].every(([of, text]) => (told.get(of) ?? '') === text)
    const isInOrder = reports.every(
      ({ turn: of, at }, i) => i === 0 || (of >= reports[i - 1].turn && at >= reports[i - 1].at)
    )
    // The last one of a turn comes when the turn ends.
    const isPaced = reports.every(({ turn: of, at }, i) => {
      const isFirst = i === 0 || of !== reports[i - 1].turn
      const isLast = i === reports.length - 1 || of !== reports[i + 1].turn
      return isFirst || isLast || at - reports[i - 1].at >= 50
    })
    return isWhole && isInOrder && isPaced && clock.pending === 0
  })
  await holds(t, property)
})

test('a model that talks all day makes less than 10,000 reports', (t) => {
  const clock = new ManualClock()
  let count = 0
  const tokens = new TokenReports(clock, () => count++)
  for (let ms = 0; ms < 6 * 3_600_000; ms += 50) {
    tokens.push('x', 1)
    clock.advance(50)
  }
  t.ok(count > 1000 && count < 10_000, `${count}`)
})
