import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { tempDir } from '../../support/tmp.js'
import { fakeHome } from '../command-line.js'

test('a fault in the form of a plan is reported with its line and its path', async (t: Assert) => {
  const plan = path.join(await tempDir(t), 'plan.yaml')
  await writeFile(plan, 'tasks:\n  - id: a\n    capability: text.stats\n    needs: b\n')
  const form = { path: ['tasks', 0, 'needs'], reason: 'Invalid input: expected array, received string' }
  const { run } = await fakeHome(t, {
    calls: {
      'swarm.start': () => {
        throw new NodeError('USAGE', 'a plan', { data: { faults: [form], moreFaults: 0 } })
      }
    }
  })
  const { stderr } = await run(['swarm', 'run', 'x', '--plan', plan])
  t.ok(stderr.includes(`${plan}:4: tasks.0.needs: ${form.reason}  [USAGE]`), stderr)
})
