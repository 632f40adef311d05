import { createStarters } from '../../src/adapters/agents/starters/starters.js'
import { COMMAND_AGENT, MODULE_AGENT, openAgent } from '../support/agents/open-agent.js'
import { realClock } from '../support/agents/real-clock.js'
import { agentRuntimeContract, type EndlessWork } from './agent-runtime-contract.js'

const orders = {
  succeeds: {
    capability: 'subject.do',
    input: { do: 'echo', value: { list: [1, 'two', null] } },
    result: { list: [1, 'two', null] }
  },
  fails: { capability: 'subject.do', input: { do: 'fail' }, message: /it went wrong/ },
  reports: { capability: 'subject.do', input: { do: 'progress' } },
  large: { capability: 'subject.do', input: { do: 'large', size: 500_000 } }
}

function endless(name: string, what: string, survivors: readonly string[] = []): EndlessWork {
  return { name, capability: 'subject.do', input: { do: what }, survivors }
}

agentRuntimeContract('command', {
  ...orders,
  make: async (t, limits) => (await openAgent(t, COMMAND_AGENT, { limits })).agent,
  endless: [
    endless('waits', 'endless'),
    endless('ignores SIGTERM', 'stubborn'),
    endless('has a child that ignores SIGTERM', 'family')
  ]
})

agentRuntimeContract('module', {
  ...orders,
  make: async (t, limits) => (await openAgent(t, MODULE_AGENT, { limits })).agent,
  endless: [
    endless('waits', 'endless', ['pid']),
    endless('ignores the signal', 'stubborn'),
    endless('never yields', 'busy'),
    endless('has a child that ignores SIGTERM', 'family')
  ]
})

agentRuntimeContract('starter', {
  make: () => {
    const text = createStarters({ grants: [], clock: realClock }).find(({ definition }) => definition.id === 'text')
    if (text === undefined) throw new Error('no starter text')
    return text
  },
  succeeds: {
    capability: 'text.stats',
    input: { text: 'one two\nthree\n' },
    result: {
      lines: 2,
      words: 3,
      bytes: 14,
      sha256: '6481b98de00b3b8c0eccd56b3877aa72d7cbb9c2b97142fa35f7177f9456926d'
    }
  },
  fails: { capability: 'text.stats', input: {}, message: /neither text nor bytes/ },
  endless: []
})
