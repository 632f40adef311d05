import test from 'brittle'
import { refusal, refusedThere, stepsFor } from '../../../src/node/messaging/error-hints.js'
import { NodeError } from '../../../src/kit/errors.js'
import { approvalScene, callText, firstWaiting } from '../../support/approval-scene.js'
import { failsWith } from '../../support/fails.js'

const DENIED = new NodeError('POLICY_DENIED', 'a person denied it', { data: { rule: 'policy.yaml:3: ask' } }).toBody()

test('a refusal names its node and its rule, once; other errors stay as they are', (t) => {
  const told = stepsFor(refusedThere(DENIED, 'key'), 'text@peer')
  t.is(told.message, 'refused by peer: a person denied it (policy.yaml:3: ask)')
  t.alike(told.data, { rule: 'policy.yaml:3: ask', node: 'peer' })
  t.alike(stepsFor(told, 'text@other'), told)
  const failed = new NodeError('TASK_FAILED', 'it broke').toBody()
  t.alike(stepsFor(refusedThere(failed, 'key'), 'text@peer'), failed)
  const onTheWay = { ...DENIED, data: { via: 'hop', rule: 'r' } }
  t.alike(
    stepsFor(refusedThere(onTheWay, 'key'), 'text@peer'),
    onTheWay,
    'a refusal of a hop is not attributed to the target'
  )
  t.is(refusal(DENIED, 'here').message, 'refused by here: a person denied it (policy.yaml:3: ask)')
})

test('the caller reads the name of the node whose person, or whose rule, refused, also in its task', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const denied = callText(owner)
  await world.settle()
  await peer.api().call('approvals.deny', { id: await firstWaiting(peer) })
  await world.settle()
  const message = 'refused by peer: a person denied it (policy.yaml:3: ask)'
  t.is((await denied).error?.message, message)
  t.is((await owner.api().call('tasks.list', {})).tasks[0]?.error?.message, message)
  const late = callText(owner, { timeoutMs: 600_000 })
  await world.settle()
  await world.pass(300_000, 10_000)
  t.is((await late).error?.message, 'refused by peer: nobody allowed it in time (policy.yaml:3: ask)')
  peer.policy.write('rules:\n  - { name: closed, decision: deny }\n')
  const refused = callText(owner)
  await world.settle()
  t.is((await refused).error?.message, 'refused by peer: the policy denies it (policy.yaml:2: deny (closed))')
  owner.policy.write('rules:\n  - decision: deny\n')
  const own = await failsWith(t, 'POLICY_DENIED', () => callText(owner))
  t.is(own.message, 'refused by owner: the policy denies it (policy.yaml:2: deny)')
})
