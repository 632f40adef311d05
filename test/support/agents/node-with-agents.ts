// A stand-in for a node: runs one endless task of a `command` agent and one of a `module` agent, prints the pids of all
// their processes as JSON, then the pid of each further guard once that knows them, and waits to be killed. Arguments:
// run directory, then the word `blind` to lose its guard.
import type { RuntimeSpec } from '../../../src/adapters/agents/files/runtime-type.js'
import { buildAgent } from '../../../src/adapters/agents/files/build-agent.js'
import { ProcessGroups } from '../../../src/adapters/agents/process/process-groups.js'
import { definitionOf } from './definition.js'
import { COMMAND_AGENT, MODULE_AGENT } from './open-agent.js'
import { realClock } from './real-clock.js'
import { recordedRun, taskOf } from './task.js'

const [, , runDir = '', mode] = process.argv
const groups = new ProcessGroups(runDir)

async function start(runtime: RuntimeSpec, order: string): Promise<number[]> {
  const agent = buildAgent(
    { definition: definitionOf(runtime.type), runtime, instructions: '' },
    { groups, clock: realClock, env: process.env, log: () => {} }
  )
  const run = recordedRun()
  void agent.run(taskOf('subject.do', { do: order }), run)
  return Object.values((await run.report()) as Record<string, number>)
}

const command = await start(COMMAND_AGENT, 'family')
// It never yields: it cannot notice that its channel has closed.
const module = await start(MODULE_AGENT, 'busy')
console.log(JSON.stringify({ pids: [...command, ...module], guard: groups.guardPid }))
let told = groups.guardPid
setInterval(() => {
  const { guardPid } = groups
  if (guardPid === null || guardPid === told) return
  told = guardPid
  console.log(JSON.stringify({ guard: guardPid }))
}, 10)
if (mode === 'blind') process.kill(process.pid, 'SIGSTOP')
