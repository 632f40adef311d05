import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { createStarters, STARTER_IDS } from '../../../../src/adapters/agents/starters/starters.js'
import type { HostedAgent } from '../../../../src/ports/agent-runtime.js'
import { failureText, resultOf } from '../../../support/agents/open-agent.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { tempDir } from '../../../support/tmp.js'
import { holds } from '../../../support/holds.js'

const compile = createSchemaCompiler()

function starter(id: string, grants: readonly string[] = []): HostedAgent {
  const found = createStarters({ grants, clock: realClock }).find((agent) => agent.definition.id === id)
  if (found === undefined) throw new Error(`no starter ${id}`)
  return found
}

/** Calls a capability as a node does: input and result fit their schemas. */
async function call(
  t: Assert,
  agent: HostedAgent,
  [capability, input]: readonly [string, object]
): Promise<Record<string, unknown>> {
  const descriptor = agent.definition.capabilities.find((one) => one.id === capability)
  t.alike(compile(descriptor?.inputSchema)(input), [], `input of ${capability}`)
  const result = resultOf(await agent.run(taskOf(capability, input), recordedRun()))
  t.alike(compile(descriptor?.outputSchema)(result), [], `result of ${capability}`)
  return result as Record<string, unknown>
}

test('the starters are host, text and files; they may be repeated, and files.write alone has a side effect', (t) => {
  const starters = createStarters({ grants: [], clock: realClock })
  t.alike(
    starters.map(({ definition }) => [definition.id, definition.capabilities.map((one) => one.id)]),
    [
      ['host', ['host.report']],
      ['text', ['text.stats']],
      ['files', ['files.search', 'files.read', 'files.stat', 'files.list', 'files.write', 'files.append']]
    ]
  )
  t.alike(
    STARTER_IDS,
    starters.map(({ definition }) => definition.id)
  )
  for (const { definition } of starters) {
    t.is(definition.source, 'built-in')
    for (const one of definition.capabilities) {
      const effects = one.id === 'files.write' ? ['write'] : ['none', 'read']
      t.ok(one.idempotent && effects.includes(one.sideEffect ?? ''), one.id)
      t.is(compile(one.inputSchema)('not an object').length > 0, true, `${one.id} has a real schema`)
    }
  }
})

test('host.report describes this machine', async (t: Assert) => {
  const report = await call(t, starter('host'), ['host.report', {}])
  t.ok((report['cores'] as number) > 0)
  t.is((report['os'] as { platform: string }).platform, process.platform)
})

test('text.stats counts texts and bytes alike', async (t: Assert) => {
  const agent = starter('text')
  const hello = {
    lines: 1,
    words: 2,
    bytes: 11,
    sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9'
  }
  t.alike(await call(t, agent, ['text.stats', { text: 'hello world', file: 'a.txt', more: 1 }]), hello)
  t.alike(await call(t, agent, ['text.stats', { bytes: Buffer.from('hello world').toString('base64') }]), hello)
  const empty = await call(t, agent, ['text.stats', { text: '' }])
  t.alike([empty['lines'], empty['words'], empty['bytes']], [0, 0, 0])
  const binary = await call(t, agent, ['text.stats', { bytes: '/w==' }])
  t.is(binary['bytes'], 1, 'bytes that are no text are counted as they are')
})

test('the lines of text.stats are those between newlines, its words those between spaces', async (t: Assert) => {
  const agent = starter('text')
  await holds(
    t,
    fc.asyncProperty(
      fc.array(fc.array(fc.constantFrom('a', 'bb', 'é'), { maxLength: 4 }), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      async (lines, closed) => {
        const text = lines.map((words) => words.join(' \t')).join('\n') + (closed ? '\n' : '')
        const result = resultOf(await agent.run(taskOf('text.stats', { text }), recordedRun())) as Record<
          string,
          unknown
        >
        const newlines = text.split('\n').length - 1
        const expected = text === '' || text.endsWith('\n') ? newlines : newlines + 1
        return (
          result['lines'] === expected &&
          result['words'] === lines.flat().length &&
          result['bytes'] === Buffer.byteLength(text)
        )
      }
    )
  )
})

async function granted(t: Assert): Promise<{ agent: HostedAgent; dir: string }> {
  const dir = await fs.realpath(await tempDir(t))
  await fs.mkdir(path.join(dir, 'src', 'deep'), { recursive: true })
  await fs.mkdir(path.join(dir, 'node_modules'))
  await fs.writeFile(path.join(dir, 'a.ts'), 'one\nneedle here\n')
  await fs.writeFile(path.join(dir, 'src', 'b.ts'), 'needle\nno\nneedle again')
  await fs.writeFile(path.join(dir, 'src', 'deep', 'c.md'), 'a needle\u0007 in hay')
  await fs.writeFile(path.join(dir, 'node_modules', 'd.ts'), 'needle')
  await fs.writeFile(path.join(dir, 'raw.bin'), new Uint8Array([0xff, 0, 0x6e]))
  return { agent: starter('files', [dir]), dir }
}

test('files.search finds files by glob', async (t: Assert) => {
  const { agent, dir } = await granted(t)
  t.alike(await call(t, agent, ['files.search', { pattern: '*.ts' }]), {
    hits: [{ path: path.join(dir, 'a.ts') }, { path: path.join(dir, 'src/b.ts') }],
    truncated: false
  })
  t.alike(await call(t, agent, ['files.search', { pattern: 'src/**/*.md' }]), {
    hits: [{ path: path.join(dir, 'src/deep/c.md') }],
    truncated: false
  })
})

test('files.search finds lines by text, made safe to show, up to its limit', async (t: Assert) => {
  const { agent, dir } = await granted(t)
  t.alike((await call(t, agent, ['files.search', { text: 'needle' }]))['hits'], [
    { path: path.join(dir, 'a.ts'), line: 2, text: 'needle here' },
    { path: path.join(dir, 'src/b.ts'), line: 1, text: 'needle' },
    { path: path.join(dir, 'src/b.ts'), line: 3, text: 'needle again' },
    { path: path.join(dir, 'src/deep/c.md'), line: 1, text: 'a needle in hay' }
  ])
  const few = await call(t, agent, ['files.search', { text: 'needle', limit: 2 }])
  t.is((few['hits'] as unknown[]).length, 2)
  t.is(few['truncated'], true)
  const both = await call(t, agent, ['files.search', { text: 'needle', pattern: '*.md', limit: 1 }])
  t.is(both['truncated'], false)
})

test('files.read gives text or bytes, up to a limit that cuts no character', async (t: Assert) => {
  const { agent, dir } = await granted(t)
  t.alike(await call(t, agent, ['files.read', { path: 'a.ts' }]), {
    path: path.join(dir, 'a.ts'),
    size: 16,
    truncated: false,
    text: 'one\nneedle here\n'
  })
  t.is((await call(t, agent, ['files.read', { path: 'raw.bin' }]))['bytes'], '/wBu')
  await fs.writeFile(path.join(dir, 'euro'), 'a€€')
  const cut = await call(t, agent, ['files.read', { path: 'euro', maxBytes: 6 }])
  t.alike([cut['text'], cut['truncated'], cut['size']], ['a€', true, 7])
})

test('files.stat gives the kind of a file', async (t: Assert) => {
  const { agent, dir } = await granted(t)
  const stat = await call(t, agent, ['files.stat', { path: path.join(dir, 'a.ts') }])
  t.alike([stat['type'], stat['size']], ['file', 16])
  t.is((await call(t, agent, ['files.stat', { path: 'src' }]))['type'], 'directory')
})

test('an operation without a grant fails with the name of the config key', async (t: Assert) => {
  const { agent } = await granted(t)
  const refused = async (one: HostedAgent, capability: string, input: object, code = 'TASK_FAILED'): Promise<void> => {
    const message = failureText(t, code, await one.run(taskOf(capability, input), recordedRun()))
    t.ok(message.includes('agents.grants'), message)
  }
  await refused(agent, 'files.read', { path: '/etc/passwd' })
  await refused(agent, 'files.stat', { path: '../' })
  await refused(starter('files'), 'files.search', { pattern: '*' }, 'FORBIDDEN')
  await refused(starter('files'), 'files.read', { path: 'a.ts' }, 'FORBIDDEN')
})

test('a search ends when it is aborted', async (t: Assert) => {
  const { agent, dir } = await granted(t)
  for (let i = 0; i < 300; i++) await fs.writeFile(path.join(dir, `f${i}`), 'x')
  const run = recordedRun()
  const running = agent.run(taskOf('files.search', { text: 'nothing like it' }), run)
  run.abort()
  failureText(t, 'CANCELED', await running)
})

test('a capability that a starter does not have fails', async (t: Assert) => {
  t.ok(
    /no capability text\.none/.test(
      failureText(t, 'TASK_FAILED', await starter('text').run(taskOf('text.none', {}), recordedRun()))
    )
  )
})
