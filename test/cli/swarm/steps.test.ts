import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { stepLines } from '../../../src/cli/swarm/steps.js'
import { Output } from '../../../src/cli/terminal/output.js'
import type { SwarmEvent, SwarmRequest } from '../../../src/ports/swarm-api.js'

type Failure = Extract<SwarmEvent, { type: 'item' }>

const typed = ['swarm', 'run', 'go']
const sink = { write: (): void => {} }
const output = new Output({ json: false, color: 'never', out: sink, err: sink, env: {}, home: null, typed })
const AGAIN = `  try: a2a-node swarm run go --input '<json as expected>'`

function refused(stage: string | undefined, given?: string): Failure {
  const data = { expected: '{"n": number}', ...(given === undefined ? {} : { given }) }
  const error = new NodeError('INVALID_INPUT', 'it does not fit', { data, next: ['a2a-node agents show x@b'] }).toBody()
  const item = stage ?? 'one'
  return {
    type: 'item',
    ...(stage === undefined ? {} : { stage }),
    item,
    agent: 'x@b',
    attempt: 1,
    status: 'failed',
    result: null,
    error
  }
}

/** The lines about an input that was refused, without the expected form. */
function linesOf(request: Partial<SwarmRequest>, failure: Failure): string[] {
  const whole = { goal: 'go', capability: 'x', strategy: 'each', input: { first: 1 }, ...request } as const
  return stepLines(output, [failure], { request: whole, isList: false }).slice(1)
}

test('a refused input is that of its sub-task: of the request only where the sub-task takes it', (t: Assert) => {
  const own = ['  given: {"first":1}', AGAIN]
  const other = ['  try: a2a-node agents show x@b']
  const plan = {
    tasks: [
      { id: 'a', capability: 'x' },
      { id: 'b', capability: 'x', needs: ['a'] },
      { id: 'c', capability: 'x', input: { n: '{goal}' } },
      { id: 'd', capability: 'x', items: [1] }
    ]
  }
  const cases: readonly (readonly [Partial<SwarmRequest>, string | undefined, readonly string[]])[] = [
    [{}, undefined, own],
    [{ strategy: 'pipeline' }, undefined, own],
    [{ strategy: 'pipeline' }, 'stage-1', own],
    [{ strategy: 'pipeline' }, 'stage-2', other],
    [{ strategy: 'pipeline' }, 'reduce', other],
    [{ strategy: 'each', reduce: 'job.sum' }, 'each', own],
    [{ strategy: 'each', reduce: 'job.sum' }, 'reduce', other],
    [{ strategy: 'vote', judge: 'job.judge' }, 'vote_votes', own],
    [{ strategy: 'vote', judge: 'job.judge' }, 'vote', other],
    [{ strategy: 'race', reduce: 'job.sum' }, 'race', own],
    [{ strategy: 'plan', plan }, 'a', own],
    [{ strategy: 'plan', plan }, 'b', other],
    [{ strategy: 'plan', plan }, 'c', other],
    [{ strategy: 'plan', plan }, 'd', other],
    [{ strategy: 'plan', plan: { tasks: plan.tasks.slice(2, 3) } }, undefined, other]
  ]
  for (const [request, stage, lines] of cases)
    t.alike(linesOf(request, refused(stage)), lines, `${request.strategy ?? 'each'} ${stage ?? ''}`)
})

test('the input that the node reports with a refusal is shown, and not the one of the request', (t: Assert) => {
  t.alike(linesOf({ strategy: 'pipeline' }, refused('stage-2', '{"text":"\u001b[2J"}')), [
    '  given: {"text":"[2J"}',
    '  try: a2a-node agents show x@b'
  ])
})
