import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { isGroupAlive } from '../../../../src/adapters/agents/process/process-table.js'
import { killLeftovers, removeRunRecord, writeRunRecord } from '../../../../src/adapters/agents/process/run-records.js'
import { eventually, isRunning } from '../../../support/agents/eventually.js'
import { sleeper } from '../../../support/agents/sleeper.js'
import { tempDir } from '../../../support/tmp.js'

/** Writes a record as a node that has died would have left it. */
async function abandon(runDir: string, processGroup: number, change: Record<string, unknown> = {}): Promise<void> {
  writeRunRecord(runDir, processGroup, 'req_7')
  const file = path.join(runDir, `agent-${processGroup}.json`)
  const record = JSON.parse(await fs.readFile(file, 'utf8')) as Record<string, unknown>
  await fs.writeFile(
    file,
    JSON.stringify({ ...record, owner: { pid: process.pid, identity: 'another start' }, ...change })
  )
}

test('a record names group, request and node, for the owner of the home only, and goes when it is removed', async (t: Assert) => {
  const runDir = path.join(await tempDir(t), 'run')
  const { processGroup } = await sleeper(t)
  writeRunRecord(runDir, processGroup, 'req_7')
  const [name = ''] = await fs.readdir(runDir)
  const record = JSON.parse(await fs.readFile(path.join(runDir, name), 'utf8')) as Record<string, unknown>
  t.is(record['processGroup'], processGroup)
  t.is(record['requestId'], 'req_7')
  t.is((await fs.stat(path.join(runDir, name))).mode & 0o777, 0o600)
  t.is((await fs.stat(runDir)).mode & 0o777, 0o700)
  removeRunRecord(runDir, processGroup)
  removeRunRecord(runDir, processGroup)
  t.alike(await fs.readdir(runDir), [])
})

test('processes left by a dead node are killed as a group, and their record is removed', async (t: Assert) => {
  const runDir = await tempDir(t)
  const { processGroup, second } = await sleeper(t, { ignoring: true, family: true })
  await abandon(runDir, processGroup)
  const killed = await killLeftovers(runDir)
  t.alike(
    killed.map((record) => [record.processGroup, record.requestId]),
    [[processGroup, 'req_7']]
  )
  t.absent(isRunning(second ?? 0))
  t.absent(isGroupAlive(processGroup))
  t.alike(await fs.readdir(runDir), [])
})

test('a group whose first process has ended is killed too', async (t: Assert) => {
  const runDir = await tempDir(t)
  const { processGroup, second } = await sleeper(t, { family: true })
  await abandon(runDir, processGroup)
  process.kill(processGroup, 'SIGKILL')
  await eventually(() => !isRunning(processGroup))
  t.ok(isRunning(second ?? 0))
  t.is((await killLeftovers(runDir)).length, 1)
  t.absent(isRunning(second ?? 0))
})

test('a later process with the same pid is left alone', async (t: Assert) => {
  const runDir = await tempDir(t)
  const { processGroup } = await sleeper(t)
  await abandon(runDir, processGroup, { identity: 'an earlier process' })
  t.alike(await killLeftovers(runDir), [])
  t.ok(isRunning(processGroup))
  t.alike(await fs.readdir(runDir), [], 'its record is of no use any more')
})

test('groups of a node that lives are left alone, and so are their records', async (t: Assert) => {
  const runDir = await tempDir(t)
  const { processGroup } = await sleeper(t)
  writeRunRecord(runDir, processGroup, null)
  t.alike(await killLeftovers(runDir), [])
  t.ok(isRunning(processGroup))
  t.is((await fs.readdir(runDir)).length, 1)
})

test('damaged records are removed and kill nothing; other files stay', async (t: Assert) => {
  const runDir = await tempDir(t)
  const { processGroup } = await sleeper(t)
  const damaged = [
    '',
    '{"processGroup":',
    'null',
    '{"processGroup":0,"identity":"","owner":{"pid":1,"identity":""}}',
    '{"processGroup":-1}',
    '[]'
  ]
  for (const [i, text] of damaged.entries())
    await fs.writeFile(path.join(runDir, `agent-${processGroup + i}.json`), text)
  await fs.writeFile(path.join(runDir, 'control.sock'), '')
  t.alike(await killLeftovers(runDir), [])
  t.ok(isRunning(processGroup))
  t.alike(await fs.readdir(runDir), ['control.sock'])
  t.alike(await killLeftovers(path.join(runDir, 'none')), [], 'no directory, no leftovers')
})
