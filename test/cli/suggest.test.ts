import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { tempDir } from '../support/tmp.js'
import { fakeHome } from './command-line.js'
import { agent } from './samples.js'

test('a capability of a plan without an agent is reported with similar ones', async (t: Assert) => {
  const plan = path.join(await tempDir(t), 'plan.yaml')
  await writeFile(plan, 'tasks:\n  - id: a\n    capability: text.stat\n')
  const unknown = new NodeError('NO_CAPABLE_AGENT', 'no agent in the mesh has the capability text.stat', {
    data: { capability: 'text.stat' }
  })
  const { run } = await fakeHome(t, {
    agents: [agent('text', 'laptop')],
    calls: {
      'swarm.start': () => {
        throw unknown
      },
      'swarm.preview': () => ({ stages: [], error: unknown.toBody() })
    }
  })
  t.ok((await run(['swarm', 'run', 'x', '--plan', plan])).stderr.includes('(did you mean text.stats?)'))
  t.ok((await run(['swarm', 'run', 'x', '--plan', plan, '--dry-run'])).stdout.includes('(did you mean text.stats?)'))
})
