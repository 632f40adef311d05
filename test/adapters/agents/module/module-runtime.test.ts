import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { eventually, isRunning } from '../../../support/agents/eventually.js'
import { failureText, MODULE_AGENT, openAgent, resultOf } from '../../../support/agents/open-agent.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { tempDir } from '../../../support/tmp.js'
import type { LocalAgent } from '../../../../src/adapters/agents/files/hosted-agent.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'

function order(agent: LocalAgent, what: string, more: object = {}): Promise<AgentOutcome> {
  return agent.run(taskOf('subject.do', { do: what, ...more }), recordedRun())
}

interface Identity {
  readonly pid: number
  readonly runs: number
}

const whoami = async (agent: LocalAgent): Promise<Identity> => resultOf(await order(agent, 'whoami')) as Identity

test('the child stays up between tasks, and nothing is started before the first', async (t: Assert) => {
  const { agent, runDir } = await openAgent(t, MODULE_AGENT)
  await t.exception(fs.readdir(runDir), /ENOENT/)
  const first = await whoami(agent)
  const second = await whoami(agent)
  t.is(second.pid, first.pid)
  t.is(second.runs, 2)
  t.is((await fs.readdir(runDir)).length, 1, 'and it stands on record')
  await agent.close()
  t.absent(isRunning(first.pid))
  t.alike(await fs.readdir(runDir), [])
})

test('the module gets the whole task', async (t: Assert) => {
  const { agent, dir } = await openAgent(t, MODULE_AGENT)
  const file = path.join(dir, 'agent.mjs')
  await fs.writeFile(file, 'export default { run: (task) => task }')
  const plain = await openAgent(t, { ...MODULE_AGENT, path: file })
  t.alike(
    resultOf(await plain.agent.run(taskOf('subject.do', { a: 1 }), recordedRun())),
    taskOf('subject.do', { a: 1 })
  )
  void agent
})

test('results become JSON: undefined null, bytes base64, and a value without a JSON form is INVALID_OUTPUT', async (t: Assert) => {
  const { agent } = await openAgent(t, MODULE_AGENT)
  t.is(resultOf(await order(agent, 'nothing')), null)
  t.alike(resultOf(await order(agent, 'bytes')), { raw: 'AQID', buffer: 'aGk=' })
  failureText(t, 'INVALID_OUTPUT', await order(agent, 'circle'))
  t.ok(/function/.test(failureText(t, 'INVALID_OUTPUT', await order(agent, 'function'))))
})

test('the environment is scrubbed', async (t: Assert) => {
  const spec = { ...MODULE_AGENT, env: { NAMED: 'yes' } }
  const { agent } = await openAgent(t, spec, { env: { PATH: process.env['PATH'], HOME: '/h', SECRET: 'token' } })
  t.alike(Object.keys(resultOf(await order(agent, 'environment')) as object).sort(), ['HOME', 'NAMED', 'PATH'])
})

test('a child that crashes fails its task with the reason; the next task has a new one', async (t: Assert) => {
  const { agent } = await openAgent(t, MODULE_AGENT)
  const before = await whoami(agent)
  t.ok(/nobody caught this/.test(failureText(t, 'TASK_FAILED', await order(agent, 'crash'))))
  t.ok(/exit code 7/.test(failureText(t, 'TASK_FAILED', await order(agent, 'quit'))))
  const after = await whoami(agent)
  t.not(after.pid, before.pid)
  t.is(after.runs, 1)
})

test('a run that does not end after an abort costs the child; the next task has a new one', async (t: Assert) => {
  const { agent } = await openAgent(t, MODULE_AGENT)
  const before = await whoami(agent)
  const run = recordedRun()
  const running = agent.run(taskOf('subject.do', { do: 'busy' }), run)
  await run.report()
  run.abort()
  failureText(t, 'CANCELED', await running)
  t.absent(isRunning(before.pid))
  t.not((await whoami(agent)).pid, before.pid)
})

test('a run that heeds its signal does not cost the child', async (t: Assert) => {
  const { agent } = await openAgent(t, MODULE_AGENT)
  const before = await whoami(agent)
  const run = recordedRun()
  const running = agent.run(taskOf('subject.do', { do: 'endless' }), run)
  await run.report()
  run.abort()
  failureText(t, 'CANCELED', await running)
  t.is((await whoami(agent)).pid, before.pid)
})

test('runs overlap in one child, and one that has to be killed takes the others with it', async (t: Assert) => {
  const { agent, dir } = await openAgent(t, MODULE_AGENT, { limits: { concurrency: 3 } })
  const gate = path.join(dir, 'gate')
  const two = [recordedRun(), recordedRun()]
  const both = two.map((run) => agent.run(taskOf('subject.do', { do: 'overlap', value: gate }), run))
  await Promise.all(two.map((run) => run.report()))
  await fs.writeFile(gate, '')
  t.alike((await Promise.all(both)).map(resultOf), ['both', 'both'])

  const [stubborn, bystander] = [recordedRun(), recordedRun()]
  const killed = agent.run(taskOf('subject.do', { do: 'stubborn' }), stubborn)
  const lost = agent.run(taskOf('subject.do', { do: 'endless' }), bystander)
  await Promise.all([stubborn.report(), bystander.report()])
  stubborn.abort()
  failureText(t, 'CANCELED', await killed)
  t.ok(/SIGKILL/.test(failureText(t, 'TASK_FAILED', await lost)))
  t.ok((await order(agent, 'nothing')).ok)
})

test('log lines of the module reach the log', async (t: Assert) => {
  const lines: string[] = []
  const { agent } = await openAgent(t, MODULE_AGENT, { log: (line) => lines.push(line) })
  resultOf(await order(agent, 'log'))
  t.alike(lines, ['a line for the log'])
})

test('a module that cannot be loaded fails its tasks with the reason, and is not tried again and again', async (t: Assert) => {
  let now = 0
  const { agent: _unused, dir } = await openAgent(t, MODULE_AGENT)
  const file = path.join(dir, 'agent.mjs')
  await fs.writeFile(file, 'import "./none.mjs"')
  const clock = { ...realClock, monotonic: () => now }
  const { agent } = await openAgent(t, { ...MODULE_AGENT, path: file }, { clock })
  t.ok(/could not be loaded: .*none\.mjs/.test(failureText(t, 'TASK_FAILED', await order(agent, 'x'))))
  t.absent(/next try/.test(failureText(t, 'TASK_FAILED', await order(agent, 'x'))), 'the second try is made at once')
  t.ok(/none\.mjs.*next try in 1 s/.test(failureText(t, 'TASK_FAILED', await order(agent, 'x'))))
  await fs.writeFile(file, 'export default { run: () => "well" }')
  t.ok(/next try/.test(failureText(t, 'TASK_FAILED', await order(agent, 'x'))))
  now += 1000
  t.is(resultOf(await order(agent, 'x')), 'well')
})

test('a module without run says so', async (t: Assert) => {
  const { dir } = await openAgent(t, MODULE_AGENT)
  const file = path.join(dir, 'agent.mjs')
  await fs.writeFile(file, 'export const run = () => 1')
  const { agent } = await openAgent(t, { ...MODULE_AGENT, path: file })
  t.ok(/run\(task, ctx\)/.test(failureText(t, 'TASK_FAILED', await order(agent, 'x'))))
})

test('a module that cuts its channel is ended and replaced', async (t: Assert) => {
  const { dir } = await openAgent(t, MODULE_AGENT)
  const file = path.join(dir, 'agent.mjs')
  await fs.writeFile(
    file,
    'export default { run: ({ input }) => input.cut ? new Promise(() => process.disconnect()) : process.pid }'
  )
  const { agent } = await openAgent(t, { ...MODULE_AGENT, path: file })
  const pid = Number(resultOf(await order(agent, 'x')))
  failureText(t, 'TASK_FAILED', await order(agent, 'x', { cut: true }))
  await eventually(() => !isRunning(pid))
  t.not(resultOf(await order(agent, 'x')), pid)
})

test('the end of a child that could not be recorded does not touch the one that came after it', async (t: Assert) => {
  const { agent, runDir } = await openAgent(t, MODULE_AGENT)
  await fs.writeFile(runDir, 'in the way')
  const refused = await order(agent, 'whoami')
  t.absent(refused.ok, 'no record, no child')
  await fs.rm(runDir)
  const next = whoami(agent)
  const { pid } = await next
  t.is((await whoami(agent)).pid, pid)
  t.is((await fs.readdir(runDir)).length, 1)
})

test('a module that cannot be loaded is reported with file and line, also for a fault in its imports', async (t: Assert) => {
  const dir = await tempDir(t)
  const write = async (name: string, text: string): Promise<string> => {
    await fs.writeFile(path.join(dir, name), text)
    return path.join(dir, name)
  }
  const cut = await write('cut.mjs', 'export default {\n  run() { return 1 }\n')
  const cases: [string, string][] = [
    [cut, `${cut}:3: Unexpected end of input`],
    [await write('importer.mjs', "import './cut.mjs'\n"), `${cut}:3: Unexpected end of input`],
    [await write('thrower.mjs', "const a = 1\nthrow new Error('at the top')\n"), `${dir}/thrower.mjs:2: at the top`],
    [
      await write('named.mjs', "import { nope } from 'node:fs'\n"),
      `${dir}/named.mjs:1: The requested module 'node:fs' does not provide`
    ]
  ]
  for (const [file, expected] of cases) {
    const { agent } = await openAgent(t, { ...MODULE_AGENT, path: file })
    const reason = failureText(t, 'TASK_FAILED', await order(agent, 'whoami'))
    t.ok(reason.startsWith(`the agent's module could not be loaded: ${expected}`), reason)
  }
})
