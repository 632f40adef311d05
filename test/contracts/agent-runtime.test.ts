import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Assert } from 'brittle'
import { buildAgent } from '../../src/adapters/agents/build-agent.js'
import type { RuntimeSpec } from '../../src/adapters/agents/agent-file.js'
import { ProcessGroups } from '../../src/adapters/agents/process-groups.js'
import { createStarters } from '../../src/adapters/agents/starters.js'
import type { AgentLimits, HostedAgent } from '../../src/ports/agent-runtime.js'
import { definitionOf } from '../support/agents/definition.js'
import { realClock } from '../support/agents/real-clock.js'
import { tempDir } from '../support/tmp.js'
import { agentRuntimeContract, type EndlessWork } from './agent-runtime-contract.js'

const support = fileURLToPath(new URL('../support/agents', import.meta.url))

async function make(t: Assert, runtime: RuntimeSpec, limits: Partial<AgentLimits>): Promise<HostedAgent> {
  const groups = new ProcessGroups(path.join(await tempDir(t), 'run'))
  t.teardown(() => groups.close(), { order: 1 })
  const parts = { groups, clock: realClock, env: process.env, log: () => {} }
  return buildAgent({ definition: definitionOf(runtime.type, limits), runtime }, parts)
}

const orders = {
  succeeds: { capability: 'subject.do', input: { do: 'echo', value: { list: [1, 'two', null] } }, result: { list: [1, 'two', null] } },
  fails: { capability: 'subject.do', input: { do: 'fail' }, message: /it went wrong/ },
  reports: { capability: 'subject.do', input: { do: 'progress' } },
  large: { capability: 'subject.do', input: { do: 'large', size: 500_000 } }
}

function endless(name: string, what: string, survivors: readonly string[] = []): EndlessWork {
  return { name, capability: 'subject.do', input: { do: what }, survivors }
}

agentRuntimeContract('command', {
  ...orders,
  make: (t, limits) =>
    make(t, { type: 'command', command: [process.execPath, path.join(support, 'command-agent.js')], env: {}, cwd: support }, limits),
  endless: [endless('waits', 'endless'), endless('ignores SIGTERM', 'stubborn'), endless('has a child that ignores SIGTERM', 'family')]
})

agentRuntimeContract('module', {
  ...orders,
  make: (t, limits) => make(t, { type: 'module', path: path.join(support, 'module-agent.js'), env: {} }, limits),
  endless: [
    endless('waits', 'endless', ['pid']),
    endless('ignores the signal', 'stubborn'),
    endless('never yields', 'busy'),
    endless('has a child that ignores SIGTERM', 'family')
  ]
})

agentRuntimeContract('starter', {
  make: (_t, _limits) => {
    const text = createStarters({ grants: [], clock: realClock }).find(({ definition }) => definition.id === 'text')
    if (text === undefined) throw new Error('no starter text')
    return text
  },
  succeeds: {
    capability: 'text.stats',
    input: { text: 'one two\nthree\n' },
    result: { lines: 2, words: 3, bytes: 14, sha256: '6481b98de00b3b8c0eccd56b3877aa72d7cbb9c2b97142fa35f7177f9456926d' }
  },
  fails: { capability: 'text.stats', input: {}, message: /neither text nor bytes/ },
  endless: []
})
