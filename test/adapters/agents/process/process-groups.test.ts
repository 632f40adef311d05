import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type Assert } from 'brittle'
import { ProcessGroups } from '../../../../src/adapters/agents/process/process-groups.js'
import { isGroupAlive } from '../../../../src/adapters/agents/process/process-table.js'
import { killLeftovers } from '../../../../src/adapters/agents/process/run-records.js'
import { ended, isRunning } from '../../../support/agents/eventually.js'
import { sleeper } from '../../../support/agents/sleeper.js'
import { tempDir } from '../../../support/tmp.js'

const NODE = fileURLToPath(new URL('../../../support/agents/node-with-agents.js', import.meta.url))

interface RunningNode {
  readonly child: ChildProcess
  /** Of all agent processes. */
  readonly pids: readonly number[]
  readonly guard: number
}

/** Starts a process that runs agents, and waits until they run. */
async function startNode(t: Assert, runDir: string, mode = ''): Promise<RunningNode> {
  const child = spawn(process.execPath, [NODE, runDir, mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { pids, guard } = JSON.parse(String(line)) as { pids: number[]; guard: number }
  t.teardown(() => {
    for (const pid of [child.pid ?? 0, guard, ...pids]) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  })
  return { child, pids, guard }
}

async function open(t: Assert): Promise<{ groups: ProcessGroups; runDir: string }> {
  const runDir = path.join(await tempDir(t), 'run')
  const groups = new ProcessGroups(runDir)
  t.teardown(() => groups.close())
  return { groups, runDir }
}

test('a group is ended with all its processes, and forgotten', async (t: Assert) => {
  const { groups, runDir } = await open(t)
  const { processGroup, second } = await sleeper(t, { family: true })
  groups.adopt(processGroup, 'req_1')
  t.is((await fs.readdir(runDir)).length, 1)
  await Promise.all([groups.end(processGroup), groups.end(processGroup)])
  t.absent(isGroupAlive(processGroup))
  t.absent(isRunning(second ?? 0))
  t.alike(await fs.readdir(runDir), [])
  await groups.end(processGroup)
})

test('a program that ignores SIGTERM is killed; kill does so at once', async (t: Assert) => {
  const { groups } = await open(t)
  const [patient, swift] = [await sleeper(t, { ignoring: true, family: true }), await sleeper(t, { ignoring: true })]
  groups.adopt(patient.processGroup, null)
  groups.adopt(swift.processGroup, null)
  const order: string[] = []
  await Promise.all([
    groups.end(patient.processGroup).then(() => order.push('ended')),
    groups.kill(swift.processGroup).then(() => order.push('killed'))
  ])
  t.alike(order, ['killed', 'ended'])
  t.absent(isGroupAlive(patient.processGroup) || isGroupAlive(swift.processGroup))
})

test('a group that cannot be recorded is killed at once', async (t: Assert) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'file'), '')
  const groups = new ProcessGroups(path.join(dir, 'file'))
  t.teardown(() => groups.close())
  const { processGroup } = await sleeper(t)
  await t.exception.all(() => groups.adopt(processGroup, null))
  await ended(processGroup)
  t.absent(isGroupAlive(processGroup))
})

test('close ends every group and the guard', async (t: Assert) => {
  const { groups } = await open(t)
  t.is(groups.guardPid, null, 'no guard before the first group')
  const { processGroup } = await sleeper(t)
  groups.adopt(processGroup, null)
  const guard = groups.guardPid ?? 0
  t.ok(isRunning(guard))
  await groups.close()
  t.absent(isGroupAlive(processGroup))
  t.absent(isRunning(guard))
  await groups.close()
})

test('no agent process outlives a node that is killed, not even one that never yields', async (t: Assert) => {
  const runDir = path.join(await tempDir(t), 'run')
  const { child, pids, guard } = await startNode(t, runDir)
  t.ok(pids.length === 3 && pids.every(isRunning), 'a program, its child that ignores SIGTERM, and a busy module')
  const start = performance.now()
  child.kill('SIGKILL')
  await Promise.all([...pids, guard].map(ended))
  t.comment(`all gone after ${Math.round(performance.now() - start)} ms`)
  t.alike(await killLeftovers(runDir), [], 'nothing is left to the next start')
  t.alike(await fs.readdir(runDir), [])
})

test('a guard that dies is replaced while groups live', async (t: Assert) => {
  const { child, pids, guard } = await startNode(t, path.join(await tempDir(t), 'run'))
  const replaced = once(child.stdout as NodeJS.ReadableStream, 'data') as Promise<[Buffer]>
  process.kill(guard, 'SIGKILL')
  const [line] = await replaced
  t.not((JSON.parse(String(line)) as { guard: number }).guard, guard)
  child.kill('SIGKILL')
  await Promise.all(pids.map(ended))
  t.alike(pids.filter(isRunning), [])
})

test('programs that survive the death of node and guard are killed by the next start', async (t: Assert) => {
  const runDir = path.join(await tempDir(t), 'run')
  const { child, pids, guard } = await startNode(t, runDir, 'blind')
  process.kill(guard, 'SIGKILL')
  await ended(guard)
  child.kill('SIGKILL')
  await ended(child.pid ?? 0)
  t.ok(pids.every(isRunning))
  t.is((await killLeftovers(runDir)).length, 2)
  t.absent(pids.some(isRunning))
  t.alike(await fs.readdir(runDir), [])
})
