import test, { type Assert } from 'brittle'
import { fakeHome } from '../command-line.js'
import { agent, swarmEvents } from '../samples.js'

const REPLY = {
  requestId: 'r',
  correlationId: 'c',
  agent: 'p@laptop',
  taskId: null,
  outcome: 'COMPLETED',
  error: null,
  latencyMs: 1
} as const

test('a plan begun with --yes is shown without the note that it has not begun; one that is only shown has the note', async (t: Assert) => {
  const planner = agent('planner', 'laptop')
  const [first] = planner.capabilities
  if (first === undefined) throw new Error('the samples changed')
  const stage = {
    id: 'a',
    capability: 'c',
    labels: [],
    items: 1,
    needs: [],
    agents: ['c@laptop'],
    leftOut: [],
    isPinned: false
  }
  const { run } = await fakeHome(t, {
    agents: [{ ...planner, capabilities: [{ ...first, id: 'swarm.plan' }] }],
    swarmEvents: swarmEvents(),
    calls: {
      'message.call': () => ({ ...REPLY, payload: { tasks: [{ id: 'a', capability: 'c' }] } }),
      'swarm.preview': () => ({ stages: [stage], error: null })
    }
  })
  const begun = await run(['swarm', 'run', 'x', '--yes'])
  t.is(begun.code, 0, begun.stderr)
  t.ok(begun.stdout.includes('plan of 1 sub-task') && !begun.stderr.includes('nothing has begun'), begun.stderr)
  t.ok(
    (await run(['swarm', 'run', 'x', '--capability', 'c', '--dry-run'])).stderr.includes(
      'nothing has begun; 1 sub-task'
    )
  )
})
