import { spawnSync } from 'node:child_process'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'
import { REPOSITORY } from './command-line.js'

test('data that cannot be written is DISK_FULL, exit 78, never a silent success', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const home = await tempDir(t)
  for (const flags of [[], ['--json']]) {
    const args = [
      process.execPath,
      path.join(REPOSITORY, 'bin', 'a2a-node.js'),
      'config',
      'path',
      '--home',
      home,
      ...flags
    ]
    const { status, stderr } = spawnSync('sh', ['-c', 'exec "$0" "$@" > /dev/full', ...args], { encoding: 'utf8' })
    t.is(status, 78)
    t.ok(stderr.includes('DISK_FULL') && stderr.includes('df -h'), stderr)
  }
})

test('run by its own name, a node takes two arenas from the allocator, and gives large blocks back', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const names = ['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_']
  const script = `process.stderr.write(${JSON.stringify(names)}.map((name)=>process.env[name]).join(' '))`
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(script)}`
  }
  for (const name of names) delete env[name]
  const bin = path.join(REPOSITORY, 'bin', 'a2a-node.js')
  const { status, stderr } = spawnSync(bin, ['config', 'path', '--home', await tempDir(t)], { encoding: 'utf8', env })
  t.is(status, 0, stderr)
  t.is(stderr, '2 32768 131072')
})
