import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  type AgentFile,
  type AgentFileContext,
  type FaultyAgentFile,
  parseAgentFile
} from '../../../../src/adapters/agents/files/agent-file.js'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { CARD_MAX_CAPABILITIES } from '../../../../src/domain/card/schema.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { holds } from '../../../support/holds.js'

const context: AgentFileContext = { file: '/agents/tester.md', compileSchema: createSchemaCompiler() }

const TESTER = `---
name: tester
description: Runs one command of the test suite.
tools: Read, Grep
model: sonnet
color: green
a2a:
  version: 0.1.0
  tier: L3
  sandbox: ci
  capabilities:
    - id: test.run
      description: Run one test file and report its outcome
      input:  { type: object, required: [file], properties: { file: { type: string } } }
      output: { type: object }
      idempotent: true
      sideEffect: none
      tags: [ci]
  runtime: { type: command, command: [npm, test, --, "{input.file}"], env: { CI: 1 }, cwd: work }
  limits:  { timeout: 90s, concurrency: 2, maxOutput: 64KiB }
---
Body.
`

function good(t: Assert, text: string): AgentFile {
  const parsed = parseAgentFile(text, context)
  if (parsed.ok) return parsed
  t.fail(parsed.faults.map(({ line, reason }) => `${line}: ${reason}`).join('\n'))
  throw new Error('not a good agent file')
}

function faulty(t: Assert, text: string): FaultyAgentFile {
  const parsed = parseAgentFile(text, context)
  t.absent(parsed.ok)
  if (parsed.ok) throw new Error('not a faulty agent file')
  return parsed
}

/** One fault on this line whose reason fits. */
function hasFault(t: Assert, text: string, [line, reason]: readonly [number | null, RegExp]): void {
  const { faults } = faulty(t, text)
  t.ok(
    faults.some((fault) => fault.line === line && reason.test(fault.reason)),
    `line ${line} ${reason}; got ${faults.map((fault) => `${fault.line} ${fault.reason}`).join(' | ')}`
  )
}

test('a whole agent file becomes a definition and a runtime', (t: Assert) => {
  const { definition, runtime, ignored, instructions } = good(t, TESTER)
  t.alike(definition, {
    id: 'tester',
    name: 'tester',
    version: '0.1.0',
    description: 'Runs one command of the test suite.',
    tier: 3,
    sandboxId: 'ci',
    protocols: ['a2a/1.0'],
    capabilities: [
      {
        id: 'test.run',
        name: 'test.run',
        description: 'Run one test file and report its outcome',
        inputSchema: { type: 'object', required: ['file'], properties: { file: { type: 'string' } } },
        outputSchema: { type: 'object' },
        idempotent: true,
        sideEffect: 'none',
        tags: ['ci']
      }
    ],
    limits: { timeoutMs: 90_000, concurrency: 2, maxOutputBytes: 65_536 },
    runtime: 'command',
    source: '/agents/tester.md'
  })
  t.alike(runtime, {
    type: 'command',
    command: ['npm', 'test', '--', '{input.file}'],
    env: { CI: '1' },
    asks: false,
    cwd: '/agents/work'
  })
  t.alike(ignored, ['color'], 'tools and model are known, color is not')
  t.is(instructions, 'Body.\n')
})

test('a setting absent from a file has its default', (t: Assert) => {
  const { definition, runtime } = good(t, agentText('plain'))
  const [capability] = definition.capabilities
  t.is(definition.tier, null)
  t.is(definition.sandboxId, null)
  t.alike(definition.limits, { timeoutMs: 300_000, concurrency: 1, maxOutputBytes: 10_485_760 })
  t.alike(capability, {
    id: 'subject.do',
    name: 'subject.do',
    description: '',
    inputSchema: {},
    outputSchema: {},
    idempotent: false,
    sideEffect: 'exec'
  })
  t.alike(runtime, { type: 'command', command: ['cat'], env: {}, asks: false, cwd: '/agents' })
})

test('the path of a module is taken from the directory of its file', (t: Assert) => {
  t.alike(good(t, agentText('mod', [], '{ type: module, path: ./lib/agent.mjs }')).runtime, {
    type: 'module',
    path: '/agents/lib/agent.mjs',
    env: {}
  })
})

test('an unknown key inside a2a is a fault with its line and a suggestion', (t: Assert) => {
  hasFault(t, agentText('a', ['  limts: {}']), [8, /a2a\.limts is unknown; did you mean limits\?/])
  hasFault(t, agentText('a', ['  limits: { timeot: 5s }']), [8, /timeot is unknown; did you mean timeout\?/])
  hasFault(t, agentText('a', [], '{ type: command, command: [x], shell: true }'), [7, /a2a\.runtime\.shell is unknown/])
  const runtime = (text: string): string => agentText('a', [], text)
  hasFault(t, runtime('{ type: module, path: a.mjs, cwd: . }'), [
    7,
    /a2a\.runtime\.cwd is unknown \(known: type, path, env\)/
  ])
  hasFault(t, runtime('{ type: command, command: [x], module: a }'), [
    7,
    /runtime\.module is unknown \(known: type, command, env, cwd, asks\)/
  ])
  hasFault(t, TESTER.replace('tags:', 'tag:'), [18, /capabilities\[0\]\.tag is unknown; did you mean tags\?/])
})

test('all faults of a file are reported at once, in order of lines', (t: Assert) => {
  const { faults, ignored } = faulty(
    t,
    TESTER.replace('tier: L3', 'tier: L9')
      .replace('90s', 'soon')
      .replace('0.1.0', 'one')
      .replace('id: test.run', 'id: "-"')
  )
  t.alike(
    faults.map((fault) => fault.line),
    [8, 9, 12, 20]
  )
  t.ok(faults.every((fault) => fault.file === '/agents/tester.md'))
  t.alike(ignored, ['color'])
})

test('faults of a whole file are reported beside faults of shape', (t: Assert) => {
  const { faults } = faulty(
    t,
    TESTER.replace('tier: L3', 'tier: L9')
      .replace('{ type: object }', '{ type: thing }')
      .replace('  runtime:', '    - { id: test.run, default: 5 }\n    - [x]\n  runtime:')
      .replace('[npm, test', '["{input.program}", test')
  )
  t.alike(
    faults.map(({ line, reason }) => [line, reason.replace(/: .*/, '')]),
    [
      [9, 'a2a.tier must be L0, L1, L2 or L3'],
      [15, 'a2a.capabilities[0].output'],
      [19, 'a2a.capabilities[1].default must be true or false, not the number 5'],
      [19, 'the capability test.run is listed twice, first on line 12'],
      [20, 'a2a.capabilities[2] must be a mapping (lines of the form "key'],
      [21, 'a2a.runtime.command[0]']
    ]
  )
})

test('names are bounded, and those of the node are reserved', (t: Assert) => {
  hasFault(t, agentText('operator'), [2, /reserved/])
  for (const id of ['.', '..']) hasFault(t, agentText(id), [2, /step of a path/])
  for (const name of ['"*"', '"  "', '"a\\nb"', 'a'.repeat(129)]) hasFault(t, agentText(name), [2, /1 to 128/])
  t.is(good(t, agentText('a.b-c_9')).definition.id, 'a.b-c_9')
})

test('an absent required setting is reported by name', (t: Assert) => {
  hasFault(t, '---\nname: a\ndescription: b\n---\n', [2, /a2a is missing/])
  hasFault(t, '---\n---\n', [2, /description is missing/])
  hasFault(t, TESTER.replace(/ {2}runtime.*\n/, ''), [7, /a2a\.runtime is missing/])
  hasFault(t, agentText('a', [], '{ type: command }'), [7, /a2a\.runtime\.command is missing/])
  hasFault(t, agentText('a', [], '{ type: docker }'), [7, /a2a\.runtime\.type must be command, module or llm/])
})

test('schemas that do not compile, capabilities listed twice and two defaults are faults', (t: Assert) => {
  hasFault(t, TESTER.replace('output: { type: object }', 'output: { type: thing }'), [
    15,
    /a2a\.capabilities\[0\]\.output: not a usable JSON Schema/
  ])
  hasFault(t, TESTER.replace('output: { type: object }', 'output: [1]'), [15, /must be a JSON Schema/])
  hasFault(t, TESTER.replace('  runtime:', '    - { id: test.run }\n  runtime:'), [
    19,
    /test\.run is listed twice, first on line 12/
  ])
  hasFault(
    t,
    TESTER.replace('tags: [ci]', 'default: true').replace('  runtime:', '    - { id: b, default: true }\n  runtime:'),
    [19, /only one/]
  )
})

test('a file lists no more capabilities than a card allows', (t: Assert) => {
  const listing = (count: number): string =>
    TESTER.replace(
      '  runtime:',
      `${Array.from({ length: count - 1 }, (_, i) => `    - { id: c${i} }\n`).join('')}  runtime:`
    )
  t.is(good(t, listing(CARD_MAX_CAPABILITIES)).definition.capabilities.length, CARD_MAX_CAPABILITIES)
  hasFault(t, listing(CARD_MAX_CAPABILITIES + 1), [11, /must be at most 512 entries long/])
})

test('the input may not choose the program, and no argument holds a NUL', (t: Assert) => {
  hasFault(t, agentText('a', [], '{ type: command, command: ["{input.program}"] }'), [
    7,
    /may not be taken from the input/
  ])
  hasFault(t, agentText('a', [], '{ type: command, command: [""] }'), [7, /empty/])
  hasFault(t, agentText('a', [], '{ type: command, command: [x, "a\\0b"] }'), [7, /NUL/])
})

test('prompts have names of their own, and arguments that stand in their text', (t: Assert) => {
  const prompts = (text: string): string => TESTER.replace('  runtime:', `  prompts:\n${text}\n  runtime:`)
  const { definition } = good(
    t,
    prompts('    - { name: review, template: "Review {file}.", arguments: [{ name: file }] }')
  )
  t.alike(definition.prompts, [
    {
      name: 'review',
      description: '',
      template: 'Review {file}.',
      arguments: [{ name: 'file', description: '', required: true }]
    }
  ])
  hasFault(t, prompts('    - { name: a, template: x, arguments: [{ name: file }] }'), [
    20,
    /does not stand in the template as \{file\}/
  ])
  hasFault(t, prompts('    - { name: a, template: "{b}", arguments: [{ name: b }, { name: b }] }'), [
    20,
    /the name of another one/
  ])
  hasFault(t, prompts('    - { name: a, template: x }\n    - { name: a, template: y }'), [19, /a name of its own/])
  hasFault(t, prompts('    - { name: "a b", template: x }'), [20, /1 to 64 letters/])
  hasFault(t, prompts('    - { name: a, tmplate: x }'), [20, /did you mean template/])
})

test('limits and environment are bounded', (t: Assert) => {
  hasFault(t, agentText('a', ['  limits: { timeout: 25h }']), [8, /at most 24h/])
  hasFault(t, agentText('a', ['  limits: { maxOutput: 17MiB }']), [8, /at most 16MiB/])
  hasFault(t, agentText('a', ['  limits: { concurrency: 0 }']), [8, /concurrency/])
  hasFault(t, agentText('a', [], '{ type: command, command: [x], env: { "A=B": c } }'), [
    7,
    /environment variable|Invalid key/
  ])
  hasFault(t, `${agentText('a')}${'x'.repeat(300_000)}`, [null, /256 KiB/])
})

test('parsing never throws and never takes long, for any file', async (t: Assert) => {
  const value = fc.jsonValue({ maxDepth: 3 }).map((json) => JSON.stringify(json))
  const keys = ['version', 'tier', 'sandbox', 'capabilities', 'runtime', 'limits', 'other']
  const block = fc.array(fc.tuple(fc.constantFrom(...keys), value), { maxLength: 8 })
  await holds(
    t,
    fc.property(block, value, value, (pairs, name, description) => {
      const lines = pairs.map(([key, json]) => `  ${key}: ${json}`)
      const parsed = parseAgentFile(
        `---\nname: ${name}\ndescription: ${description}\na2a:\n${lines.join('\n')}\n---\n`,
        context
      )
      return parsed.ok || (parsed.faults.length > 0 && parsed.faults.every((fault) => fault.reason !== ''))
    }),
    500
  )
})

test('a value at a wrong place is reported in plain words, with the expected setting', (t: Assert) => {
  for (const [from, to, reason] of [
    ['name: tester', 'name: 5', 'name must be text, not the number 5'],
    ['description: Runs one', 'description: [x] # one', 'description must be text, not a list'],
    ['tier: L3', 'tier: 3', 'a2a.tier must be L0, L1, L2 or L3'],
    [
      'idempotent: true',
      'idempotent: maybe',
      'a2a.capabilities[0].idempotent must be true or false, not the text "maybe"'
    ],
    ['tags: [ci]', 'tags: ci', 'a2a.capabilities[0].tags must be a list, not the text "ci"'],
    ['timeout: 90s', 'timeout: 90', 'a2a.limits.timeout must be a duration such as 10s, 5m or 2h, at most 24h'],
    ['concurrency: 2', 'concurrency: 0', 'a2a.limits.concurrency must be at least 1'],
    ['concurrency: 2', 'concurrency: 1.5', 'a2a.limits.concurrency must be a whole number, not the number 1.5'],
    [
      '[npm, test, --, "{input.file}"]',
      'npm test',
      'a2a.runtime.command must be a list of the program and its arguments: [program, argument]'
    ],
    ['type: command', 'type: comand', 'a2a.runtime.type must be command, module or llm'],
    ['CI: 1', 'A-B: 1', 'a2a.runtime.env.A-B is no name that an environment variable may have']
  ] as const) {
    const { faults } = faulty(t, TESTER.replace(from, to))
    t.alike(
      faults.map((fault) => fault.reason),
      [reason]
    )
  }
  t.alike(
    faulty(t, '---\n- a\n---\n').faults.map((fault) => fault.reason),
    ['the front matter must be lines of the form "key: value"']
  )
})

test('an llm agent names a provider and perhaps a model of it; its limits have defaults and bounds', (t: Assert) => {
  const runtime = (text: string): string => agentText('thinker', [], text)
  const { runtime: plain, instructions } = good(t, runtime('{ type: llm, model: local }'))
  const budget = { run: 100_000, day: 1_000_000 }
  t.alike(plain, { type: 'llm', provider: 'local', model: null, tools: [], maxTurns: 8, maxTokens: 4096, budget })
  t.is(instructions.trim(), 'Instructions.')
  const { runtime: full } = good(
    t,
    runtime('{ type: llm, model: hub/org/model:8b, tools: [text.*], maxTurns: 2, budget: { day: 5 } }')
  )
  t.alike(full, {
    ...plain,
    provider: 'hub',
    model: 'org/model:8b',
    tools: ['text.*'],
    maxTurns: 2,
    budget: { run: 100_000, day: 5 }
  })
  hasFault(t, runtime('{ type: llm }'), [7, /model is missing/])
  hasFault(t, runtime('{ type: llm, model: "Local Box" }'), [7, /name of a provider/])
  hasFault(t, runtime('{ type: llm, model: local/ }'), [7, /name of a provider/])
  hasFault(t, runtime('{ type: llm, model: local, maxTurns: 65 }'), [7, /at most 64/])
  hasFault(t, runtime('{ type: llm, model: local, budget: { runs: 1 } }'), [7, /known: run, day|did you mean run/])
  hasFault(t, runtime('{ type: llm, model: local, tool: [a] }'), [7, /did you mean tools/])
})
