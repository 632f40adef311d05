import { readdir } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import type { SwarmCounts } from '../../../src/ports/swarm-api.js'
import { tempDir } from '../../support/tmp.js'
import { fakeHome } from '../command-line.js'
import { swarm, swarmEvents } from '../samples.js'

test('swarm retry follows the new swarm and exits by its status; its flags choose the items', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarms: [swarm()], swarmEvents: swarmEvents('partial') })
  t.is((await run(['swarm', 'retry', 'swarm_fake'])).code, 8)
  t.is((await run(['swarm', 'retry', 'swarm_fake', '--unknown', '--failed', '--json'])).code, 8)
  const detached = await run(['swarm', 'retry', 'swarm_fake', '--unknown', '--detach'])
  t.alike([detached.code, detached.stdout], [0, 'swarm_fake\n'])
  t.alike(
    fake.seen.flatMap(({ name, params }) => (name === 'swarm.retry' ? [params] : [])),
    [{ id: 'swarm_fake' }, { id: 'swarm_fake', failed: true, unknown: true }, { id: 'swarm_fake', unknown: true }]
  )
})

test('swarm retry says how many items of a canceled swarm it leaves out, and nothing when every item has an outcome', async (t: Assert) => {
  const leftOut = async (counts: SwarmCounts): Promise<string[]> => {
    const swarms = [{ ...swarm('canceled'), counts }]
    const { run } = await fakeHome(t, { swarms, swarmEvents: swarmEvents() })
    const { stdout, stderr } = await run(['swarm', 'retry', 'swarm_fake', '--detach'])
    t.is(stdout, 'swarm_fake\n')
    return stderr.split('\n').filter((line) => line.startsWith('not tried again'))
  }
  t.alike(await leftOut({ total: 9, completed: 2, failed: 2, skipped: 1, unknown: 1 }), [
    'not tried again: 4 items of swarm swarm_fake without an outcome when it was canceled; launch them anew'
  ])
  t.alike(await leftOut({ total: 2, completed: 1, failed: 1 }), [])
})

test('a retry that is refused leaves no directory, and gives the error of the node', async (t: Assert) => {
  const { run } = await fakeHome(t, {
    calls: {
      'swarm.retry': ({ id }) => {
        throw new NodeError('CONFLICT', `no item of swarm ${id} failed`, { next: [`a2a-node swarm results ${id}`] })
      }
    }
  })
  const root = await tempDir(t)
  const { code, stderr } = await run(['swarm', 'retry', 'swarm_x', '--results', 'files', path.join(root, 'out')])
  t.is(code, 9)
  t.ok(stderr.includes('no item of swarm swarm_x failed'), stderr)
  t.alike(await readdir(root), [])
  const { run: bare } = await fakeHome(t)
  t.is((await bare(['swarm', 'retry', 'nothing'])).code, 4)
})
