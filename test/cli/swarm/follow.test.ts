import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { fakeHome } from '../command-line.js'
import { swarm } from '../samples.js'

test('when the node stops meanwhile, the output names the nodes where the swarm continues: others that can coordinate it, else here', async (t: Assert) => {
  const coordination = { coordinator: 'laptop', epoch: 1, participants: ['laptop', 'gpu-box', 'desk top'] }
  const { fake, run } = await fakeHome(t, { swarms: [{ ...swarm('running'), coordination }] })
  let isSeated = true
  fake.watch = async function* () {
    if (isSeated) yield { type: 'coordinator', coordinator: 'laptop', epoch: 1, isHere: true } as never
    throw new NodeError('NODE_NOT_RUNNING', 'the node stopped')
  }
  const others = await run(['swarm', 'watch', 'swarm_fake'])
  t.is(others.code, 3)
  t.ok(others.stderr.includes('the swarm goes on at another (gpu-box, desk top)'), others.stderr)
  t.ok(others.stderr.includes('  try: a2a-node swarm watch swarm_fake   # on gpu-box\n'), others.stderr)
  isSeated = false
  const alone = await run(['swarm', 'watch', 'swarm_fake'])
  t.is(alone.code, 3)
  t.ok(alone.stderr.includes('the swarm goes on when the node runs again'), alone.stderr)
})
