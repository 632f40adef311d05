import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { MODULE_AGENT, openAgent, resultOf } from '../../../support/agents/open-agent.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { isRunning } from '../../../support/agents/eventually.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { tempDir } from '../../../support/tmp.js'
import { nodeOptionsFor } from '../../../../src/adapters/agents/module/module-child.js'
import type { LocalAgent } from '../../../../src/adapters/agents/files/hosted-agent.js'
import type { HealthFinding } from '../../../../src/ports/agent-runtime.js'

async function written(t: Assert, text: string, name = 'agent.mjs'): Promise<string> {
  const file = path.join(await tempDir(t), name)
  await fs.writeFile(file, text)
  return file
}

async function found(agent: LocalAgent, signal = new AbortController().signal): Promise<HealthFinding> {
  return (await agent.check?.(signal)) ?? { state: 'healthy', reason: 'no check' }
}

test('the first check loads a module and ends its process, and the next ones do not load it again', async (t: Assert) => {
  const dir = await tempDir(t)
  const text = `import fs from 'node:fs'
fs.appendFileSync(${JSON.stringify(path.join(dir, 'loads'))}, process.pid + '\\n')
export default { run: () => process.pid }`
  const { agent, runDir } = await openAgent(t, { ...MODULE_AGENT, path: await written(t, text) })
  const loads = async (): Promise<string[]> => (await fs.readFile(path.join(dir, 'loads'), 'utf8')).trim().split('\n')
  t.alike(await found(agent), { state: 'healthy', reason: null })
  t.alike(await fs.readdir(runDir), [], 'an idle agent holds no memory')
  t.absent(isRunning(Number((await loads())[0])))
  for (let i = 0; i < 3; i++) t.is((await found(agent)).state, 'healthy')
  t.is((await loads()).length, 1)
  const [one, other] = await Promise.all([agent.run(taskOf('subject.do', {}), recordedRun()), found(agent)])
  t.is(other.state, 'healthy')
  t.is(resultOf(one), Number((await loads())[1]))
  t.ok(isRunning(Number(resultOf(one))), 'a check ends no process of a task')
})

test('a task that comes during the first check runs in the process of the check', async (t: Assert) => {
  const text = `await new Promise((resolve) => setTimeout(resolve, 200))
export default { run: () => process.pid }`
  const { agent, runDir } = await openAgent(t, { ...MODULE_AGENT, path: await written(t, text) })
  const checking = found(agent)
  const pid = Number(resultOf(await agent.run(taskOf('subject.do', {}), recordedRun())))
  t.is((await checking).state, 'healthy')
  t.ok(isRunning(pid))
  t.is((await fs.readdir(runDir)).length, 1)
})

test('a module that cannot be loaded makes its agent unhealthy at the first check, with the reason, and healthy once it can', async (t: Assert) => {
  let now = 0
  const clock = { ...realClock, monotonic: () => now }
  const faults: [string, RegExp][] = [
    ['export default {', /agent\.mjs:1: Unexpected end of input/],
    ['export const run = () => 1', /its default export is no object with a run\(task, ctx\) function/],
    ["throw new Error('at the top')", /at the top/],
    ["import './none.mjs'", /none\.mjs/],
    ['process.exit(3)', /exit code 3/]
  ]
  for (const [text, reason] of faults) {
    const file = await written(t, text)
    const { agent, runDir } = await openAgent(t, { ...MODULE_AGENT, path: file }, { clock })
    const first = await found(agent)
    t.is(first.state, 'unhealthy', text)
    t.ok(reason.test(first.reason ?? ''), first.reason ?? '')
    t.alike(await fs.readdir(runDir), [])
    await fs.writeFile(file, 'export default { run: () => 1 }')
    now += 60_000
    t.is((await found(agent)).state, 'healthy')
  }
})

test('a module whose load hangs, also in a loop, is given up in bounded time, with its process', async (t: Assert) => {
  await Promise.all(
    ['await new Promise(() => setInterval(() => {}, 1000))', 'for (;;);'].map(async (text) => {
      const { agent, runDir } = await openAgent(t, { ...MODULE_AGENT, path: await written(t, text) })
      const { state, reason } = await found(agent)
      t.is(state, 'unhealthy')
      t.is(reason, "the agent's module could not be loaded: it was not loaded within 8 s")
      t.alike(await fs.readdir(runDir), [])
    })
  )
})

test('a check that is aborted ends the process of its load', async (t: Assert) => {
  const { agent, runDir } = await openAgent(t, { ...MODULE_AGENT, path: await written(t, 'for (;;);') })
  const abort = new AbortController()
  const checking = found(agent, abort.signal)
  abort.abort()
  await checking
  t.alike(await fs.readdir(runDir), [])
})

test('a TypeScript module runs where Node strips types, and is refused with the reason elsewhere', async (t: Assert) => {
  const file = await written(t, 'const one: number = 1\nexport default { run: (): number => one }', 'agent.ts')
  const { agent } = await openAgent(t, { ...MODULE_AGENT, path: file })
  const { state, reason } = await found(agent)
  const outcome = await agent.run(taskOf('subject.do', {}), recordedRun())
  if (nodeOptionsFor(file) === null) {
    t.is(state, 'unhealthy')
    t.ok(reason?.includes(`is TypeScript, and Node ${process.versions.node} strips no types`), reason ?? '')
    t.ok(!outcome.ok && outcome.message === reason)
  } else {
    t.is(state, 'healthy', reason ?? '')
    t.is(resultOf(outcome), 1)
  }
  t.alike(nodeOptionsFor('/dir.ts/agent.mjs'), [])
})
