import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { resolveHome } from '../../src/config/paths.js'
import type { HomePaths } from '../../src/config/paths.js'
import { place, restoreAlone, stagedFor } from '../../src/maintenance/restore-place.js'
import { failsWith } from '../support/fails.js'
import { tempDir } from '../support/tmp.js'

/** A home whose settings lie elsewhere, and the text files that are to be there. */
async function scene(t: Assert, files: Readonly<Record<string, string>>): Promise<HomePaths> {
  const dir = await tempDir(t)
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(dir, name)
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(file, text)
  }
  return resolveHome({
    env: { HOME: dir, XDG_DATA_HOME: path.join(dir, 'data'), XDG_CONFIG_HOME: path.join(dir, 'config') }
  })
}

const STAGED = 'data/a2a-node/default.restoring'
const DEAD = '{"pid":1234567890,"startedAt":1,"socket":""}'

test('the files of an interrupted restore go before the next one begins, files that a person added since do not', async (t) => {
  const home = await scene(t, {
    [`${STAGED}.pid`]: DEAD,
    [`${STAGED}/config/policy.yaml`]: 'rules: []',
    [`${STAGED}/config/agents/own.md`]: 'own',
    [`${STAGED}/config/config.yaml`]: 'log: {}',
    'config/a2a-node/policy.yaml': 'rules: []',
    'config/a2a-node/agents.restoring/own.md': 'ow',
    'config/a2a-node/config.yaml': 'log: { level: debug }'
  })
  const seen = await restoreAlone(home, 1, async () => [
    await fs.readdir(path.dirname(home.policyFile)),
    await fs.readdir(path.dirname(home.home))
  ])
  t.alike(seen, [['config.yaml'], ['default.restoring.lock', 'default.restoring.pid']])
  t.alike(await fs.readdir(path.dirname(home.home)), [], 'and nothing of this one is left')
})

test('of two restores to one home the second one is refused; so is one where a directory of nobody is in the way', async (t) => {
  const home = await scene(t, { 'data/a2a-node/x': '' })
  await restoreAlone(home, 1, () =>
    failsWith(t, 'CONFLICT', () => restoreAlone(home, 1, async () => t.fail('both at work')))
  )
  await fs.mkdir(stagedFor(home))
  await failsWith(t, 'CONFLICT', () => restoreAlone(home, 1, async () => t.fail('it would be lost')))
  t.ok((await fs.readdir(path.dirname(home.home))).includes('default.restoring'))
})

test('the command for a directory in the way is one word for a shell, for any name of it', async (t) => {
  const home = resolveHome({ home: path.join(await tempDir(t), "own home's") })
  const staged = stagedFor(home)
  await fs.mkdir(staged, { recursive: true })
  const error = await restoreAlone(home, 1, async () => null).catch((thrown: unknown) => thrown)
  t.alike(error instanceof NodeError ? error.next : [], [`rm -r '${staged.replaceAll("'", "'\\''")}'`])
})

test('settings and home come to their places, and when the home cannot, neither does', async (t) => {
  const files = { [`${STAGED}/config/policy.yaml`]: 'rules: []', [`${STAGED}/node.json`]: '{}' }
  const home = await scene(t, files)
  await place(home)
  t.alike(
    [await fs.readdir(home.home), await fs.readdir(path.dirname(home.policyFile))],
    [['node.json'], ['policy.yaml']]
  )
  const taken = await scene(t, { ...files, 'data/a2a-node/default/of-others': '' })
  await t.exception(() => place(taken))
  t.alike(await fs.readdir(path.dirname(taken.policyFile)), [])
})
