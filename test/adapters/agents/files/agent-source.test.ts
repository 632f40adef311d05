import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { AgentFiles, type AgentFilesOptions } from '../../../../src/adapters/agents/files/agent-source.js'
import type { Clock, Timer } from '../../../../src/kit/clock.js'
import type { AgentFault, HostedAgent } from '../../../../src/ports/agent-runtime.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { isRunning } from '../../../support/agents/eventually.js'
import { failureText, resultOf } from '../../../support/agents/open-agent.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { tempDir } from '../../../support/tmp.js'

interface AgentSet {
  readonly agents: readonly HostedAgent[]
  readonly faults: readonly AgentFault[]
}

interface Opened {
  readonly source: AgentFiles
  readonly dir: string
  readonly first: AgentSet
  /** Does something to the files and resolves with the next set that fits. */
  change(act: () => Promise<unknown>, fits?: (set: AgentSet) => boolean): Promise<AgentSet>
}

/** Loads and watches an agents directory that holds these files at first. */
async function open(
  t: Assert,
  files: Record<string, string>,
  options: Partial<AgentFilesOptions> = {}
): Promise<Opened> {
  const home = await tempDir(t)
  const dir = path.join(home, 'agents')
  await fs.mkdir(dir)
  for (const [name, text] of Object.entries(files)) await fs.writeFile(path.join(dir, name), text)
  const source = new AgentFiles({
    dirs: [dir],
    runDir: path.join(home, 'run'),
    grants: [],
    starters: false,
    clock: realClock,
    ...options
  })
  t.teardown(() => source.close())
  const first = await source.load()
  let wake: (set: AgentSet) => void = () => {}
  source.watch((agents, faults) => wake({ agents, faults }))
  const change = (act: () => Promise<unknown>, fits: (set: AgentSet) => boolean = () => true): Promise<AgentSet> =>
    new Promise((resolve, reject) => {
      wake = (set) => (fits(set) ? resolve(set) : undefined)
      act().catch(reject)
    })
  return { source, dir, first, change }
}

const idsOf = (set: AgentSet): string[] => set.agents.map(({ definition }) => definition.id)
const agentOf = (set: AgentSet, id: string): HostedAgent => {
  const found = set.agents.find(({ definition }) => definition.id === id)
  if (found === undefined) throw new Error(`no agent ${id}`)
  return found
}

test('every agent file of the directories is an agent, in the order of their names, after the starters', async (t: Assert) => {
  const { first } = await open(
    t,
    { 'b.md': agentText('bee'), 'a.md': agentText('ant'), 'notes.txt': 'no agent', '.hidden.md': 'no' },
    { starters: true }
  )
  t.alike(idsOf(first), ['host', 'text', 'files', 'ant', 'bee'])
  t.alike(first.faults, [])
  t.ok((await agentOf(first, 'ant').run(taskOf('subject.do', {}), recordedRun())).ok)
})

test('a broken file is a fault with its line, and the others are served', async (t: Assert) => {
  const { first, dir } = await open(t, {
    'a.md': agentText('ant', ['  limts: {}']),
    'b.md': agentText('bee'),
    'm.md': agentText('mod', [], '{ type: module, path: ./none.mjs }')
  })
  t.alike(idsOf(first), ['bee'])
  t.alike(
    first.faults.map(({ file, line }) => [path.relative(dir, file), line]),
    [
      ['a.md', 8],
      ['m.md', 7]
    ]
  )
})

test('a new, a changed and a removed file are noticed; agents of other files stay the same objects', async (t: Assert) => {
  const { first, dir, change } = await open(t, { 'a.md': agentText('ant') })
  const added = await change(() => fs.writeFile(path.join(dir, 'b.md'), agentText('bee')))
  t.alike(idsOf(added), ['ant', 'bee'])
  t.is(agentOf(added, 'ant'), agentOf(first, 'ant'))
  const changed = await change(() => fs.writeFile(path.join(dir, 'b.md'), agentText('bee', ['  version: 2.0.0'])))
  t.is(agentOf(changed, 'bee').definition.version, '2.0.0')
  t.is(agentOf(changed, 'ant'), agentOf(first, 'ant'))
  const removed = await change(() => fs.rm(path.join(dir, 'a.md')))
  t.alike(idsOf(removed), ['bee'])
})

test('an editor that writes aside and renames is understood', async (t: Assert) => {
  const { dir, change } = await open(t, { 'a.md': agentText('ant') })
  const changed = await change(async () => {
    await fs.writeFile(path.join(dir, 'a.md.tmp'), agentText('ant', ['  version: 3.0.0']))
    await fs.rename(path.join(dir, 'a.md.tmp'), path.join(dir, 'a.md'))
  })
  t.is(agentOf(changed, 'ant').definition.version, '3.0.0')
  t.alike(changed.faults, [])
})

test('a file that breaks keeps its last good version, the same object, until it is mended or removed', async (t: Assert) => {
  const { first, dir, change } = await open(t, { 'a.md': agentText('ant') })
  const file = path.join(dir, 'a.md')
  const broken = await change(() => fs.writeFile(file, agentText('ant', ['  tier: L9'])))
  t.is(agentOf(broken, 'ant'), agentOf(first, 'ant'))
  t.alike(
    broken.faults.map((fault) => [fault.file, fault.line]),
    [[file, 8]]
  )
  t.ok((await agentOf(broken, 'ant').run(taskOf('subject.do', {}), recordedRun())).ok, 'and it still works')
  const mended = await change(() => fs.writeFile(file, agentText('ant', ['  tier: L2'])))
  t.is(agentOf(mended, 'ant').definition.tier, 2)
  t.alike(mended.faults, [])
  await change(() => fs.writeFile(file, 'broken again'))
  t.alike(await change(() => fs.rm(file)), { agents: [], faults: [] })
})

test('an id used twice is a fault that names both files; the first wins, and the second follows when it goes', async (t: Assert) => {
  const { first, dir, change } = await open(t, { 'a.md': agentText('ant'), 'b.md': agentText('ant') })
  t.is(agentOf(first, 'ant').definition.source, path.join(dir, 'a.md'))
  t.is(first.agents.length, 1)
  const [fault] = first.faults
  t.is(fault?.file, path.join(dir, 'b.md'))
  t.is(fault?.line, 2)
  t.ok(fault?.reason.includes('a.md') && fault.reason.includes('b.md'), fault?.reason)
  const next = await change(() => fs.rm(path.join(dir, 'a.md')))
  t.is(agentOf(next, 'ant').definition.source, path.join(dir, 'b.md'))
  t.alike(next.faults, [])
})

test('a file cannot take the place of a starter', async (t: Assert) => {
  const { first } = await open(t, { 'text.md': agentText('text') }, { starters: true })
  t.is(agentOf(first, 'text').definition.source, 'built-in')
  t.ok(first.faults[0]?.reason.includes('built-in'))
})

test('a changed agent finishes the task that runs, then closes; the next task has the new version', async (t: Assert) => {
  const text = (version: string): string =>
    agentText('mod', [`  version: ${version}`], '{ type: module, path: ./mod.mjs }')
  const { first, dir, change } = await open(t, { 'mod.md': text('1.0.0') })
  t.is(first.faults.length, 1, 'the module is not there yet')
  const loaded = await change(() =>
    fs.writeFile(
      path.join(dir, 'mod.mjs'),
      `import fs from 'node:fs/promises'
       export default { async run({ input }, ctx) {
         ctx.progress(process.pid)
         while (input.until && !(await fs.stat(input.until).catch(() => null))) await new Promise((next) => setTimeout(next, 5))
         return process.pid
       } }`
    )
  )
  const old = agentOf(loaded, 'mod')
  const run = recordedRun()
  const until = path.join(dir, 'until')
  const running = old.run(taskOf('subject.do', { until }), run)
  const pid = Number(await run.report())
  const changed = await change(() => fs.writeFile(path.join(dir, 'mod.md'), text('2.0.0')))
  t.not(agentOf(changed, 'mod'), old)
  t.ok(isRunning(pid))
  const fresh = resultOf(await agentOf(changed, 'mod').run(taskOf('subject.do', {}), recordedRun()))
  t.not(fresh, pid)
  await fs.writeFile(until, '')
  t.is(resultOf(await running), pid)
  await old.close()
  t.absent(isRunning(pid))
})

test('a changed module makes a new agent, though its file is the same', async (t: Assert) => {
  const { first, dir, change } = await open(t, {
    'mod.md': agentText('mod', [], '{ type: module, path: ./mod.mjs }'),
    'mod.mjs': 'export default { run: () => 1 }'
  })
  t.is(resultOf(await agentOf(first, 'mod').run(taskOf('subject.do', {}), recordedRun())), 1)
  const changed = await change(() => fs.writeFile(path.join(dir, 'mod.mjs'), 'export default { run: () => "two" }'))
  t.is(resultOf(await agentOf(changed, 'mod').run(taskOf('subject.do', {}), recordedRun())), 'two')
})

test('a directory that cannot be read is a fault, and files of others are served', async (t: Assert) => {
  const home = await tempDir(t)
  await fs.writeFile(path.join(home, 'a.md'), agentText('ant'))
  const source = new AgentFiles({
    dirs: [path.join(home, 'none'), home],
    runDir: path.join(home, 'run'),
    grants: [],
    starters: false,
    clock: realClock
  })
  t.teardown(() => source.close())
  const set = await source.load()
  t.alike(idsOf(set), ['ant'])
  t.is(set.faults[0]?.file, path.join(home, 'none'))
})

test('a file that is too large, a directory and a broken link are faults, not exceptions', async (t: Assert) => {
  const { dir, first } = await open(t, { 'large.md': `${agentText('large')}${'x'.repeat(300_000)}` })
  t.ok(first.faults[0]?.reason.includes('256 KiB'))
  await fs.mkdir(path.join(dir, 'dir.md'))
  await fs.symlink('/no/such/file', path.join(dir, 'link.md'))
  const source = new AgentFiles({
    dirs: [dir],
    runDir: path.join(dir, 'run'),
    grants: [],
    starters: false,
    clock: realClock
  })
  t.teardown(() => source.close())
  const set = await source.load()
  t.is(set.agents.length, 0)
  t.is(set.faults.length, 3)
})

test('close ends the work of every agent and may be repeated', async (t: Assert) => {
  const { source, first } = await open(t, {
    'a.md': agentText(
      'ant',
      [],
      '{ type: command, command: [sh, -c, "echo \'{\\"type\\":\\"progress\\"}\' >&3; exec sleep 600"] }'
    )
  })
  const run = recordedRun()
  const running = agentOf(first, 'ant').run(taskOf('subject.do', {}), run)
  await run.report()
  await Promise.all([source.close(), source.close()])
  failureText(t, 'CANCELED', await running)
})

test('a directory that goes away takes its agents along, and brings them back with no fault left', async (t: Assert) => {
  const { dir, change } = await open(t, { 'a.md': agentText('ant') })
  const away = await change(
    () => fs.rename(dir, `${dir}.off`),
    (set) => set.faults[0]?.file === dir && set.agents.length === 0
  )
  t.absent(/ENOENT/.test(away.faults[0]?.reason ?? ''))
  const back = await change(
    () => fs.rename(`${dir}.off`, dir),
    (set) => set.agents.length > 0
  )
  t.alike([idsOf(back), back.faults], [['ant'], []])
  const changed = await change(() => fs.writeFile(path.join(dir, 'b.md'), agentText('bee')))
  t.alike(idsOf(changed), ['ant', 'bee'], 'and it is watched again')
})

test('a directory that is replaced at one stroke, and one that is made later, are watched', async (t: Assert) => {
  const later = path.join(await tempDir(t), 'later')
  const { dir, change } = await open(t, { 'a.md': agentText('ant') })
  await fs.mkdir(`${dir}.new`)
  await fs.writeFile(path.join(`${dir}.new`, 'b.md'), agentText('bee'))
  const replaced = await change(
    async () => {
      await fs.rm(dir, { recursive: true })
      await fs.rename(`${dir}.new`, dir)
    },
    (set) => idsOf(set).includes('bee')
  )
  t.alike(idsOf(replaced), ['bee'])
  const written = await change(() => fs.writeFile(path.join(dir, 'c.md'), agentText('cat')))
  t.alike(idsOf(written), ['bee', 'cat'])
  const other = await open(t, {}, { dirs: [later] })
  const made = await other.change(
    async () => {
      await fs.mkdir(later)
      await fs.writeFile(path.join(later, 'a.md'), agentText('ant'))
    },
    (set) => set.agents.length > 0
  )
  t.alike([idsOf(made), made.faults], [['ant'], []])
})

test('each fault is logged once, when it comes up', async (t: Assert) => {
  const lines: string[] = []
  const log: AgentFilesOptions['log'] = (level, message, fields) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const { dir, change } = await open(t, { 'a.md': agentText('ant'), 'b.md': agentText('ant') }, { log })
  t.is(lines.length, 1)
  t.ok(
    lines[0]?.startsWith('warn an agent file cannot be used') &&
      lines[0].includes('b.md') &&
      lines[0].includes('used twice'),
    lines[0]
  )
  await change(() => fs.writeFile(path.join(dir, 'c.md'), 'broken'))
  t.is(lines.length, 2)
  t.ok(lines[1]?.includes('c.md'))
})

test('sub-agent files of a directory of the config are agents, and follow every change of it', async (t: Assert) => {
  const dir = path.join(await tempDir(t), 'sub agents')
  await fs.mkdir(dir)
  const write = (name: string, text: string): Promise<void> => fs.writeFile(path.join(dir, name), text)
  await write('README.md', '# Agents\n')
  await write('Log Reader.agent.md', '---\nname: Log Reader\ndescription: Reads logs: all of them\n---\nRead.\n')
  await write('own.md', agentText('own'))
  const imported = { dir, runtime: 'llm', model: 'local', tier: 'L3', command: null } as const
  const { first, change } = await open(t, { 'a.md': agentText('ant') }, { imports: [imported] })
  t.alike(idsOf(first), ['ant', 'log-reader', 'own'])
  t.alike(first.faults, [], 'a text beside them is no fault')
  const { definition } = agentOf(first, 'log-reader')
  t.alike([definition.name, definition.tier, definition.runtime], ['Log Reader', 3, 'llm'])
  const more = await change(
    () => write('new-one.md', '---\ndescription: New\n---\nDo.\n'),
    (set) => idsOf(set).includes('new-one')
  )
  t.alike(idsOf(more), ['ant', 'log-reader', 'new-one', 'own'])
  const broken = await change(
    () => write('new-one.md', '---\ndescription: "New" one\n---\nDo.\n'),
    (set) => set.faults.length > 0
  )
  t.ok(broken.faults[0]?.reason.endsWith('put the value in quotes'))
  t.ok(idsOf(broken).includes('new-one'), 'the last good version serves')
  const disabled = await change(
    () => write('new-one.md', '---\ndescription: New\ndisable: true\n---\nDo.\n'),
    (set) => !idsOf(set).includes('new-one')
  )
  t.alike(disabled.faults, [])
})

/** The clock of this machine, and its timers that neither ran out nor were cleared. */
function countedClock(): { readonly clock: Clock; readonly running: ReadonlySet<Timer> } {
  const running = new Set<Timer>()
  const clock: Clock = {
    ...realClock,
    after: (delayMs, run) => {
      const timer: Timer = realClock.after(delayMs, () => {
        running.delete(timer)
        run()
      })
      running.add(timer)
      return timer
    },
    every: (periodMs, run) => {
      const timer = realClock.every(periodMs, run)
      running.add(timer)
      return timer
    },
    clear: (timer) => {
      if (timer !== null) running.delete(timer)
      realClock.clear(timer)
    }
  }
  return { clock, running }
}

test('other directories of the config are followed from then on, the former ones are left, and nothing of them goes on', async (t: Assert) => {
  const home = await tempDir(t)
  const [moved, late] = [path.join(home, 'moved'), path.join(home, 'late')]
  await fs.mkdir(moved)
  const sub = '---\ndescription: Writes\n---\nWrite.\n'
  for (const name of ['SKILL.md', 'x.prompt.md', 'y.instructions.md', 'CHANGELOG.md', 'writer.md'])
    await fs.writeFile(path.join(moved, name), sub)
  await fs.writeFile(path.join(moved, 'notes.md'), '# Notes\n')
  const { clock, running } = countedClock()
  const { source, dir, first, change } = await open(t, { 'a.md': agentText('ant') }, { clock })
  t.alike(idsOf(first), ['ant'])
  const plain = await change(() => Promise.resolve(source.follow({ dirs: [dir, moved], imports: [] })))
  t.is(plain.faults.length, 6, 'without a runtime no sub-agent is an agent')
  const runtime = { runtime: 'llm', model: 'local', tier: null, command: null } as const
  const imports = [moved, late].map((one) => ({ dir: one, ...runtime }))
  const imported = await change(
    () => Promise.resolve(source.follow({ dirs: [dir], imports })),
    (set) => idsOf(set).includes('writer')
  )
  t.alike(idsOf(imported), ['ant', 'writer'], 'other files of clients are no agents')
  t.alike(
    imported.faults.map(({ file }) => file),
    [late],
    'nor are they faults'
  )
  const made = await change(
    async () => {
      await fs.mkdir(late)
      await fs.writeFile(path.join(late, 'late.md'), sub)
    },
    (set) => idsOf(set).includes('late')
  )
  t.alike(made.faults, [])
  const gone = await change(
    () => fs.rm(path.join(moved, 'writer.md')),
    (set) => !idsOf(set).includes('writer')
  )
  t.alike([idsOf(gone), gone.faults], [['ant', 'late'], []])
  await source.close()
  t.is(running.size, 0, 'no former directory is watched')
})
