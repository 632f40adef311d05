import test from 'brittle'
import fc from 'fast-check'
import {
  afterTurn,
  type RunProgress,
  PROGRESS_START,
  nextTurn,
  sumOf,
  tokensOf
} from '../../../../src/adapters/agents/llm/llm-progress.js'
import { holds } from '../../../support/holds.js'

const count = (max: number): fc.Arbitrary<number> => fc.integer({ min: 1, max })
const said = fc.oneof(
  fc.constant(undefined),
  fc.nat(500),
  fc.constantFrom(-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e300)
)

test('a run never asks beyond its turns or its budgets, and never for more than is left', async (t) => {
  const limits = fc.record({ maxTurns: count(20), maxTokens: count(300), run: count(2000) })
  const turn = fc.record({ input: said, output: said, sent: fc.nat(2000), received: fc.nat(2000) })
  const property = fc.property(
    limits,
    fc.nat(3000),
    fc.array(turn, { minLength: 25, maxLength: 25 }),
    (bounds, day, turns) => {
      let course: RunProgress = PROGRESS_START
      let dayLeft = day
      for (const { input, output, ...moved } of turns) {
        const next = nextTurn(course, bounds, dayLeft)
        const used = sumOf(course.tokens)
        const isOut = course.turns >= bounds.maxTurns || used >= bounds.run || dayLeft <= 0
        if ((next.kind === 'over') !== isOut) return false
        if (next.kind === 'over') return course.turns <= bounds.maxTurns
        if (
          next.maxTokens < 1 ||
          next.maxTokens > bounds.maxTokens ||
          next.maxTokens > bounds.run - used ||
          next.maxTokens > dayLeft
        )
          return false
        const tokens = tokensOf({ input, output }, moved)
        if (!Number.isSafeInteger(sumOf(tokens)) || tokens.input < 0 || tokens.output < 0) return false
        const after = afterTurn(course, tokens)
        if (sumOf(after.tokens) !== used + sumOf(tokens) || after.turns !== course.turns + 1) return false
        course = after
        dayLeft = Math.max(0, dayLeft - sumOf(tokens))
      }
      return false
    }
  )
  await holds(t, property, 500)
})

test('the token count of a server is used where it can be true, otherwise the text is counted', (t) => {
  const moved = { sent: 401, received: 8 }
  t.alike(tokensOf({ input: 5, output: 6 }, moved), { input: 5, output: 6, isEstimated: false })
  t.alike(tokensOf({ input: undefined, output: undefined }, moved), { input: 101, output: 2, isEstimated: true })
  t.alike(tokensOf({ input: 0, output: 0 }, moved), { input: 101, output: 2, isEstimated: true })
  t.alike(tokensOf({ input: 7, output: -1 }, moved), { input: 7, output: 2, isEstimated: true })
})
