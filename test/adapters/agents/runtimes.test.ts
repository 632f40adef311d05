import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { z } from 'zod'
import { AGENT_FORMAT, AgentFormat } from '../../../src/adapters/agents/files/agent-file-schema.js'
import { AgentFiles } from '../../../src/adapters/agents/files/agent-source.js'
import { checkAgentFile } from '../../../src/adapters/agents/files/check-file.js'
import { runAgentFile } from '../../../src/adapters/agents/files/run-file.js'
import type { RuntimeType } from '../../../src/adapters/agents/files/runtime-type.js'
import { RUNTIMES } from '../../../src/adapters/agents/runtimes.js'
import type { HostedAgent } from '../../../src/ports/agent-runtime.js'
import { agentText } from '../../support/agents/agent-text.js'
import { realClock } from '../../support/agents/real-clock.js'
import { recordedRun, taskOf } from '../../support/agents/task.js'
import { tempDir } from '../../support/tmp.js'

interface EchoSpec {
  readonly type: 'echo'
  readonly book: string
  readonly voice: { readonly loud: boolean }
}

const schema = z.strictObject({
  type: z.literal('echo'),
  book: z.string(),
  voice: z.strictObject({ loud: z.boolean() }).default({ loud: false })
})

/** A runtime that no file of src knows: it answers with the text of a file. */
const echo: RuntimeType<EchoSpec, z.output<typeof schema>> = {
  type: 'echo',
  schema,
  spec: (fields, base) => ({ ...fields, book: path.resolve(base, fields.book) }),
  faults: ({ book }) => (book === 'banned.txt' ? [{ at: ['book'], reason: 'a2a.runtime.book: is banned' }] : []),
  files: ({ book }, base) => (typeof book === 'string' ? [{ key: 'book', path: path.resolve(base, book) }] : []),
  check: ({ voice }, env) =>
    voice.loud && env['PATH'] !== undefined ? ['a2a.runtime.voice: nobody is deaf here'] : [],
  create: ({ runtime: { book }, definition, instructions }) => ({
    run: async ({ input }) => ({
      ok: true,
      result: [definition.id, await fs.readFile(book, 'utf8'), instructions.trim(), input]
    }),
    check: () => ({ state: 'degraded', reason: 'it has a cold' }),
    end: () => Promise.resolve()
  })
}

const format = new AgentFormat([...RUNTIMES, echo])

async function written(t: Assert, runtime: string): Promise<{ readonly dir: string; readonly file: string }> {
  const dir = await tempDir(t)
  const file = path.join(dir, 'ant.md')
  await fs.writeFile(file, agentText('ant', [], runtime))
  await fs.writeFile(path.join(dir, 'book.txt'), 'first')
  return { dir, file }
}

test('a runtime in the table alone is checked, with faults, missing files, unknown keys and warnings of its own', async (t: Assert) => {
  const cases: readonly (readonly [runtime: string, faults: readonly string[], warnings?: readonly string[]])[] = [
    ['{ type: echo, book: book.txt }', []],
    ['{ type: echo, book: book.txt, voice: { loud: true } }', [], ['a2a.runtime.voice: nobody is deaf here']],
    ['{ type: echo, book: book.txt, bok: 1 }', ['a2a.runtime.bok is unknown; did you mean book?']],
    [
      '{ type: echo, book: book.txt, voice: { lod: true } }',
      ['a2a.runtime.voice.loud is missing', 'a2a.runtime.voice.lod is unknown; did you mean loud?']
    ],
    ['{ type: ecco, book: book.txt }', ['a2a.runtime.type must be command, module, llm or echo']]
  ]
  for (const [runtime, faults, warnings = []] of cases) {
    const { file } = await written(t, runtime)
    const report = await checkAgentFile(file, null, format)
    t.alike(report.faults.map(({ reason }) => reason).toSorted(), faults.toSorted(), runtime)
    t.alike(
      report.warnings,
      warnings.map((reason) => ({ file, line: 7, reason })),
      runtime
    )
  }
  const { dir, file } = await written(t, '{ type: echo, book: banned.txt }')
  t.alike((await checkAgentFile(file, null, format)).faults, [
    { file, line: 7, reason: 'a2a.runtime.book: is banned' },
    { file, line: 7, reason: `a2a.runtime.book: there is no file ${path.join(dir, 'banned.txt')}` }
  ])
  t.is(
    (await checkAgentFile((await written(t, '{ type: echo, book: book.txt }')).file)).faults.length,
    1,
    'the table of src does not have it'
  )
  t.alike(AGENT_FORMAT.knownKeys(['a2a', 'runtime'], 'echo'), [])
  t.alike(format.knownKeys(['a2a', 'runtime', 'voice'], 'echo'), ['loud'])
})

test('a runtime in the table alone runs, says how it is, and is made anew when a file that it names changes', async (t: Assert) => {
  const { dir, file } = await written(t, '{ type: echo, book: book.txt }')
  const { outcome } = await runAgentFile({ file, input: 1, runDir: path.join(dir, 'run'), clock: realClock, format })
  t.alike(outcome, { ok: true, result: ['ant', 'first', 'Instructions.', 1] })
  const files = new AgentFiles({
    dirs: [dir],
    runDir: path.join(dir, 'run'),
    grants: [],
    starters: false,
    clock: realClock,
    format
  })
  t.teardown(() => files.close())
  const [first] = (await files.load()).agents
  t.is(first?.definition.runtime, 'echo')
  t.alike(await first?.check?.(new AbortController().signal), { state: 'degraded', reason: 'it has a cold' })
  const next = new Promise<HostedAgent | undefined>((resolve) => files.watch(([agent]) => resolve(agent)))
  await fs.writeFile(path.join(dir, 'book.txt'), 'second edition')
  await fs.utimes(file, new Date(), new Date())
  const second = await next
  t.not(second, first)
  t.alike(await second?.run(taskOf('subject.do', 2), recordedRun()), {
    ok: true,
    result: ['ant', 'second edition', 'Instructions.', 2]
  })
})
