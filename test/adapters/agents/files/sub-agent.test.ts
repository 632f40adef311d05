import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { type AgentFile, parseAgentFile } from '../../../../src/adapters/agents/files/agent-file.js'
import { agentTextOf, type SubAgentRuntime } from '../../../../src/adapters/agents/files/sub-agent.js'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { SUB_AGENT_FILES } from '../../../support/agents/sub-agent-files.js'
import { holds } from '../../../support/holds.js'

const LLM: SubAgentRuntime = { runtime: 'llm', model: 'local', tier: 'L2', command: null }
const COMMAND: SubAgentRuntime = { runtime: 'command', model: null, tier: null, command: null }
const compileSchema = createSchemaCompiler()

function agentOf(t: Assert, file: string, text: string, runtime: SubAgentRuntime = LLM): AgentFile {
  const made = agentTextOf(text, file, runtime)
  const parsed = made.kind === 'agent' ? parseAgentFile(made.text, { file, compileSchema }) : null
  if (parsed?.ok === true) return parsed
  t.fail(`${file}: ${JSON.stringify(made)} ${JSON.stringify(parsed)}`)
  throw new Error('not an agent')
}

test('sub-agent files of every client become agents: a title is the display name, the name of the file the id', (t: Assert) => {
  const agents = Object.entries(SUB_AGENT_FILES).map(([file, text]) => agentOf(t, `/${file}`, text))
  t.alike(
    agents.map(({ definition: { id, name } }) => [id, name]),
    [
      ['log-reader', 'log-reader'],
      ['csharpsmith', 'C# Smith & Sons'],
      ['uber-den-wolken', 'uber-den-wolken'],
      ['data_miner', 'data_miner'],
      ['docs-writer', 'docs-writer']
    ]
  )
  const [logs, smith, flights, miner] = agents
  t.is(
    logs?.definition.description,
    'Use this agent to read logs. Examples: <example>user: "Why did it stop?"</example>\\n\\nProactively: after each failure.'
  )
  t.is(logs?.instructions.trim(), "You read logs. It's all you do.")
  t.is(flights?.definition.description, '[Preview] plans flights: short ones')
  t.is(miner?.definition.description, 'Finds data.\nSecond line: with a colon.\n')
  t.is(smith?.definition.tier, 2)
  t.alike(
    smith?.definition.capabilities.map(({ id, sideEffect }) => [id, sideEffect]),
    [['csharpsmith.run', 'read']]
  )
  t.alike(smith?.runtime, {
    type: 'llm',
    provider: 'local',
    model: null,
    tools: [],
    maxTurns: 8,
    maxTokens: 4096,
    budget: { run: 100_000, day: 1_000_000 }
  })
})

test('a key of a client without a value is an absent one: the file gives the name', (t: Assert) => {
  for (const empty of ['', ' null', ' ~'])
    for (const runtime of [LLM, COMMAND]) {
      const text = `---\nname:${empty}\ndescription: d\ntools:${empty}\nmodel:${empty}\ncolor:${empty}\n---\nBody\n`
      const { definition } = agentOf(t, '/my-agent.md', text, runtime)
      t.alike([definition.id, definition.name, definition.description], ['my-agent', 'my-agent', 'd'])
    }
})

test('names that no id can have are display names in agent files too', (t: Assert) => {
  const text = (name: string): string =>
    `---\nname: ${name}\ndescription: d\na2a: { capabilities: [{ id: x }], runtime: { type: command, command: [cat] } }\n---\n`
  for (const [name, file, id] of [
    ['Release Manager', 'release-manager.md', 'release-manager'],
    ['SQL/Postgres (v2)', 'sql.agent.md', 'sql'],
    ['"Ärztin"', 'Ärztin Nr. 5.md', 'arztin-nr.-5'],
    ['short-id', 'other.md', 'short-id']
  ] as const) {
    const parsed = parseAgentFile(text(name), { file: path.join('/', file), compileSchema })
    t.alike(parsed.ok && [parsed.definition.id, parsed.definition.name], [id, name.replaceAll('"', '')], name)
  }
  for (const [name, file] of [
    ['My Agent', '测试.md'],
    ['My Agent', 'operator.md'],
    ['My Agent', '__proto__.md']
  ] as const) {
    const parsed = parseAgentFile(text(name), { file: path.join('/', file), compileSchema })
    t.ok(!parsed.ok && parsed.faults.some(({ line, reason }) => line === 2 && reason.includes('gives no id')), file)
  }
})

test('a command agent is started as its own client, above the directory of the client, without input in its arguments', (t: Assert) => {
  const commandOf = (file: string, text: string): unknown[] => {
    const { command, cwd } = agentOf(t, file, text, COMMAND).runtime as unknown as { command: string[]; cwd: string }
    return [command.slice(0, -1).join(' '), cwd]
  }
  const body = '---\ndescription: d\n---\nDo it.\n'
  t.alike(commandOf('/p/.claude/agents/a.md', body), ['claude -p --agent=a', '/p'])
  t.alike(commandOf('/p/.github/agents/b.agent.md', body), ['copilot -s --agent=b -p', '/p'])
  t.alike(commandOf('/p/.gemini/agents/c.md', body), ['gemini -p', '/p'])
  t.alike(commandOf('/home/.opencode/agent/d.md', body), ['opencode run --agent=d', '/home'])
  t.alike(commandOf('/x/e.md', '---\ndescription: d\nmode: subagent\n---\nDo.\n'), ['opencode run --agent=e', '/x'])
  const braces = agentOf(t, '/x/f.md', '---\nname: "{input.text} it"\n---\nDo.\n', COMMAND).runtime as unknown as {
    command: string[]
  }
  t.absent(braces.command.join(' ').includes('{'), 'a name is no place for the input')
  const own = agentOf(t, '/x/f.md', body, { ...COMMAND, command: ['./run', '--fast'] }).runtime as unknown as {
    command: string[]
  }
  t.alike(own.command, ['./run', '--fast'])
})

test('an imported agent has the id of its source: its own, the one of its file where the client goes by files, else its name', (t: Assert) => {
  for (const [file, keys, id] of [
    ['/p/.github/agents/unit-tests.agent.md', 'name: tester', 'unit-tests'],
    ['/p/.opencode/agent/reviewer.md', 'name: critic', 'reviewer'],
    ['/x/plain.md', 'name: speaker\nmode: subagent', 'plain'],
    ['/x/helper.agent.md', 'name: Helper of All', 'helper'],
    ['/p/.claude/agents/any.md', 'name: tester', 'tester'],
    ['/p/.gemini/agents/any.md', 'name: finder', 'finder'],
    ['/x/any.md', 'name: shown\nid: own-id', 'own-id'],
    ['/p/.github/agents/any.agent.md', 'name: shown\nid: own-id', 'own-id'],
    ['/x/any.md', 'name: shown\nid: Not an Id', 'shown']
  ] as const) {
    const { definition } = agentOf(t, file, `---\n${keys}\ndescription: d\n---\nDo.\n`, LLM)
    t.is(definition.id, id, `${file}: ${keys}`)
    t.is(definition.name, /name: (.*)/.exec(keys)?.[1], 'the name stays for people')
  }
  t.is(agentTextOf('---\nid: operator\nname: a\n---\nDo.\n', '/x/a.md', LLM).kind, 'faulty')
})

test('the id of an agent file may stand in its block, and is refused with its line where no agent may have it', (t: Assert) => {
  const text = (id: string): string =>
    `---\nname: shown\ndescription: d\na2a:\n  id: ${id}\n  capabilities: [{ id: x }]\n  runtime: { type: command, command: [cat] }\n---\n`
  const parsed = parseAgentFile(text('own'), { file: '/x/other.md', compileSchema })
  t.alike(parsed.ok && [parsed.definition.id, parsed.definition.name], ['own', 'shown'])
  for (const id of ['operator', 'Big One', '..', '-x', '7', '""']) {
    const wrong = parseAgentFile(text(id), { file: '/x/other.md', compileSchema })
    t.ok(!wrong.ok && wrong.faults.some(({ line }) => line === 5), id)
  }
})

test('a file that its author withdrew is skipped, and one that cannot be an agent says why', (t: Assert) => {
  const kind = (text: string): string => agentTextOf(text, '/x/a.md', LLM).kind
  t.is(kind('# Read me\n'), 'skipped')
  t.is(kind('---\ndescription: d\ndisable: true\n---\nDo.\n'), 'skipped')
  t.is(kind('---\nname: a\nkind: remote\nagent_card_url: https://x.example\n---\n'), 'skipped')
  t.is(kind('---\nname: a\ndescription: d\na2a: {}\n---\nDo.\n'), 'own')
  t.is(kind('---\nname: a\ndescription: d\n---\n\n'), 'faulty', 'no instructions')
  t.is(kind('---\nname: a\ndescription: "Fast" agent\n---\nDo.\n'), 'faulty')
})

test('any description arrives whole in the agent', async (t: Assert) => {
  const words = fc.constantFrom(
    'a: b',
    '@x',
    '"q"',
    "it's",
    '#1',
    '- d',
    '`c`',
    '*b*',
    'user:',
    '{x}',
    '[y]',
    '&',
    '%',
    ' ',
    '\\n',
    '—'
  )
  await holds(
    t,
    fc.property(fc.array(words, { minLength: 1, maxLength: 8 }), (parts) => {
      const description = `Use ${parts.join(' ')} end`.replace(/ +/g, ' ').replaceAll(' #', ' ')
      const made = agentTextOf(`---\nname: a\ndescription: ${description}\n---\nDo.\n`, '/x/a.md', LLM)
      const parsed = made.kind === 'agent' ? parseAgentFile(made.text, { file: '/x/a.md', compileSchema }) : null
      return parsed?.ok === true && parsed.definition.description === description
    }),
    300
  )
})
