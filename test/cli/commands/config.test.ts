import { spawnSync } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { allSettings } from '../../../src/config/settings.js'
import { tempDir } from '../../support/tmp.js'
import { run } from '../command-line.js'

test('config path prints where the file lies', async (t: Assert) => {
  const home = await tempDir(t)
  t.is((await run(['config', 'path'], { home })).stdout, `${home}/config.yaml\n`)
})

test('config show has every setting with its value and origin', async (t: Assert) => {
  const home = await tempDir(t)
  await writeFile(path.join(home, 'config.yaml'), 'swarm:\n  leaseMs: 8s\n')
  const env = { A2A_NODE_LOG_LEVEL: 'warn' }
  const { settings } = JSON.parse((await run(['config', 'show', '--json'], { home, env })).stdout) as {
    settings: Record<string, unknown>[]
  }
  t.alike(
    settings.map((one) => one['key']),
    allSettings().map((one) => one.path)
  )
  const lease = settings.find((one) => one['key'] === 'swarm.leaseMs')
  t.alike(
    [lease?.['value'], lease?.['source'], lease?.['where'], lease?.['unit']],
    [8000, 'file', `${home}/config.yaml:2`, 'ms']
  )
  t.is(settings.find((one) => one['key'] === 'log.level')?.['source'], 'env')
  const { stdout } = await run(['config', 'show'], { home, env })
  t.ok(stdout.includes(`  leaseMs: 8000   # from ${home}/config.yaml:2`), stdout)
  t.ok(stdout.split('\n').every((line) => line.length <= 80 || line.includes('# from') || line.includes(': {')))
})

test('config check names every fault and exits 78, or says ok', async (t: Assert) => {
  const home = await tempDir(t)
  t.is((await run(['config', 'check'], { home })).code, 0)
  await writeFile(path.join(home, 'config.yaml'), 'log:\n  level: loud\n  colour: red\n')
  const ran = await run(['config', 'check'], { home })
  t.is(ran.code, 78)
  t.ok(
    ran.stdout.includes('config.yaml:2: log.level: "loud" is not allowed (allowed: debug | info | warn | error)'),
    ran.stdout
  )
  t.ok(ran.stdout.includes('config.yaml:3: log.colour: no such key'))
  const json = JSON.parse((await run(['config', 'check', '--json'], { home })).stdout) as {
    ok: boolean
    faults: { line: number }[]
  }
  t.alike([json.ok, json.faults.map((one) => one.line).sort((a, b) => a - b)], [false, [2, 3]])
})

test('config check says what is wrong with the file itself', async (t: Assert) => {
  const home = await tempDir(t)
  const file = path.join(home, 'config.yaml')
  const check = async (expected: string): Promise<void> => {
    const ran = await run(['config', 'check'], { home })
    t.is(ran.code, 78)
    t.is(ran.stdout, `fault  ${file}${expected}\n`)
    const { faults } = JSON.parse((await run(['config', 'check', '--json'], { home })).stdout) as {
      faults: { where: string }[]
    }
    t.is(faults.length, 1)
  }
  await mkdir(file)
  await check(': cannot be read: it is a directory')
  await rm(file, { recursive: true })
  await writeFile(file, ' '.repeat(262_145))
  await check(': larger than 262144 bytes')
  await rm(file)
  spawnSync('mkfifo', [file])
  await check(': cannot be read: it is no regular file')
})
