import test, { type Assert } from 'brittle'
import { ImportedAgents } from '../../../../src/adapters/agents/imports/imported-agents.js'
import { WORDS } from '../../../../src/adapters/mcp/imported/imported-server.js'
import type { HostedAgent } from '../../../../src/ports/agent-runtime.js'
import type { ImportAdapter } from '../../../../src/ports/imports.js'
import { eventually } from '../../../support/agents/eventually.js'
import { failsWith } from '../../../support/fails.js'
import { agentDefinition } from '../../../support/fake-agents.js'
import { FakeStore } from '../../../support/fake-store.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** An import with one item, `talk`, which is there at once. */
function adapterOf(name: string, transport: ImportAdapter['transport'], address: string | null = null): ImportAdapter {
  return {
    words: { ...WORDS, document: transport === 'a2a' ? 'a2a' : 'mcp' },
    spec: { name, pin: null },
    transport,
    address,
    listTimeoutMs: 10_000,
    open: () => Promise.resolve({ list: () => Promise.resolve({}), close: () => Promise.resolve() }),
    isAllowed: () => true,
    hash: () => 'hash',
    isNothing: () => false,
    encode: () => ({}),
    decode: () => ({}),
    change: () => null,
    changeText: () => '',
    items: () => [{ name: 'talk', description: 'Talks.', inputSchema: {} }],
    faults: () => [],
    capability: () => `${name}.do`,
    offer: () => ({ definition: agentDefinition(name), leftOut: [] }),
    call: () => Promise.resolve({ ok: true, result: `${transport} ${name}` })
  }
}

interface Given {
  isTaken?(agent: HostedAgent): boolean
  onChange?(): Promise<void>
}

async function imported(
  t: Assert,
  adapters: readonly ImportAdapter[],
  { isTaken = () => false, onChange = () => Promise.resolve() }: Given = {}
) {
  const clock = new ManualClock()
  const imports = new ImportedAgents({
    adapters,
    store: new FakeStore(),
    clock,
    chance: () => 0.5,
    log: () => {},
    isTaken
  })
  t.teardown(() => imports.close())
  await imports.load()
  imports.watch(onChange)
  return imports
}

test('of two imports with one name the first is found; an A2A agent is not found as an MCP server', async (t: Assert) => {
  const imports = await imported(t, [
    adapterOf('one', 'stdio'),
    adapterOf('one', 'a2a'),
    adapterOf('far', 'a2a', 'https://far.example')
  ])
  const found = async (name: string): Promise<string[]> =>
    (await imports.refresh(name, null)).map(({ transport }) => transport)
  t.alike(await found('one'), ['stdio'])
  t.alike(await found('far'), ['a2a'])
  t.alike(await found('https://far.example'), ['a2a'], 'also by its address')
  t.is(imports.named('one')?.transport, 'stdio')
  t.is(imports.named('far'), null)
  await failsWith(t, 'TOOL_SERVER_NOT_FOUND', () => imports.refresh('other', null))
})

test('an import whose agent is taken offers nothing, and the status says so', async (t: Assert) => {
  let isTaken = false
  const imports = await imported(t, [adapterOf('one', 'stdio')], { isTaken: () => isTaken })
  await imports.refresh('one', null)
  const talk = () => imports.list()[0]?.tools[0]
  t.alike([talk()?.offered, talk()?.reason, imports.problems()], [true, null, []])
  isTaken = true
  t.alike([talk()?.offered, talk()?.reason], [false, 'an agent one is on this node already'])
  t.alike(
    imports.problems().map(({ code }) => code),
    ['AGENT_ID_TAKEN']
  )
})

test('an import is ready when its agent is in service', async (t: Assert) => {
  let serve = (): void => {}
  const isServed = new Promise<void>((resolve) => {
    serve = resolve
  })
  let changes = 0
  const onChange = (): Promise<void> => (changes++, isServed)
  const imports = await imported(t, [adapterOf('one', 'stdio')], { onChange })
  const refreshed = imports.refresh('one', null)
  await eventually(() => changes === 1)
  t.is(imports.list()[0]?.state, 'starting')
  serve()
  t.is((await refreshed)[0]?.state, 'ready')
})
