import test, { type Assert } from 'brittle'
import { joinAgents } from '../../src/compose/joined-agents.js'
import type { AgentSource, HostedAgent } from '../../src/ports/agent-runtime.js'
import { FakeAgent } from '../support/fake-agents.js'

interface Source extends AgentSource {
  change(...ids: readonly string[]): unknown
}

const agent = (id: string): HostedAgent => new FakeAgent({ id } as HostedAgent['definition'])

function source(ids: readonly [string, ...string[]], closed: string[]): Source {
  let tell: Parameters<AgentSource['watch']>[0] = () => {}
  return {
    load: () => Promise.resolve({ agents: ids.map(agent), faults: [{ file: ids[0], line: null, reason: 'bad' }] }),
    watch: (onChange) => {
      tell = onChange
    },
    close: () => Promise.resolve(void closed.push(ids[0])),
    change: (...now) => tell(now.map(agent), [])
  }
}

test('agents of several sources are one set, of which the earlier source goes first', async (t: Assert) => {
  const closed: string[] = []
  const [files, imported] = [source(['text', 'time'], closed), source(['time', 'web'], closed)]
  let taken: readonly HostedAgent[] = []
  const joined = joinAgents([files, imported], (agents) => {
    taken = agents
  })
  const first = await joined.load()
  const idsOf = (agents: readonly HostedAgent[]): string[] => agents.map(({ definition }) => definition.id)
  t.alike(idsOf(first.agents), ['text', 'time', 'web'])
  t.alike(idsOf(taken), ['time'])
  t.is(first.faults.length, 2)
  let told: readonly HostedAgent[] = []
  const isServed = Promise.resolve()
  joined.watch((agents) => {
    told = agents
    return isServed
  })
  t.is(imported.change('web', 'more'), isServed, 'a source waits until its agents are in service')
  t.alike(idsOf(told), ['text', 'time', 'web', 'more'], 'a change of one leaves the others as they are')
  t.alike(idsOf(taken), [])
  files.change('more')
  t.alike(idsOf(told), ['more', 'web'])
  t.alike(idsOf(taken), ['more'])
  await joined.close()
  t.alike(closed, ['time', 'text'], 'the last source closes first')
})
