import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { openNodeStore } from '../../../src/adapters/storage/home/node-store.js'
import { tempDir } from '../../support/tmp.js'
import { run } from '../command-line.js'

test('without a terminal each change that needs a yes is refused, with this command line to list it and to make it', async (t: Assert) => {
  const HOME = await tempDir(t)
  const home = path.join(HOME, 'node')
  const cursor = path.join(HOME, '.cursor', 'mcp.json')
  const env = { HOME, XDG_CONFIG_HOME: path.join(HOME, '.config') }
  await fs.mkdir(path.dirname(cursor))
  await fs.mkdir(home)
  await openNodeStore(home).write('seed', { seed: 'x' })
  const connect = ['connect', 'cursor', '--server-name', 'mine']
  for (const [words, flags] of [
    [connect, ['--dry-run', '--yes']],
    [
      ['uninstall', '--server-name', 'mine'],
      ['--dry-run', '--yes']
    ],
    [
      ['reset', '--json'],
      ['--dry-run', '--yes']
    ],
    [['doctor', '--new-identity', '--force', '--name', 'fresh'], ['--yes']]
  ] as const) {
    const { code, stderr } = await run([...words, '--home', home], { env })
    t.is(code, 2, stderr)
    t.ok(stderr.includes('this needs a confirmation, and there is no terminal: nothing was changed'), stderr)
    const typed = ['a2a-node', ...words].join(' ')
    for (const flag of flags) t.ok(stderr.includes(`${typed} --home ${home} ${flag}`), stderr)
    if (words === connect) t.is((await run([...connect, '--home', home, '--yes'], { env })).code, 0)
  }
  t.ok(existsSync(path.join(home, 'seed.json')))
})
