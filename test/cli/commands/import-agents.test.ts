import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { agentText } from '../../support/agents/agent-text.js'
import { SUB_AGENT_FILES } from '../../support/agents/sub-agent-files.js'
import { tempDir } from '../../support/tmp.js'
import { run, spawned } from '../command-line.js'

interface Report {
  readonly isDryRun: boolean
  readonly files: readonly {
    readonly file: string
    readonly status: string
    readonly id: string
    readonly reason: string | null
    readonly ignored: string[]
  }[]
}

async function homeWith(t: Assert): Promise<{ home: string; source: string }> {
  const home = await tempDir(t)
  const source = path.join(home, 'collection')
  for (const [name, text] of Object.entries(SUB_AGENT_FILES)) {
    await fs.mkdir(path.join(source, path.dirname(name)), { recursive: true })
    await fs.writeFile(path.join(source, name), text)
  }
  await fs.writeFile(path.join(source, 'README.md'), '# Agents\n')
  await fs.writeFile(
    path.join(home, 'config.yaml'),
    'llm: { providers: { local: { url: "http://127.0.0.1:9/v1", model: tiny } } }\n'
  )
  return { home, source }
}

const reportOf = (stdout: string): Report => JSON.parse(stdout) as Report

test('agents import makes agents of a collection that check takes, and a second import changes nothing', async (t) => {
  const { home, source } = await homeWith(t)
  const dry = await run(['agents', 'import', source, '--runtime', 'llm', '--dry-run', '--json'], { home })
  t.is(dry.code, 0, dry.stderr)
  t.alike(await fs.readdir(home).then((names) => names.includes('agents')), false, 'nothing is written')
  const made = await run(['agents', 'import', source, '--runtime', 'llm', '--tier', 'L2', '--json'], { home })
  t.is(made.code, 0, made.stderr)
  const { files } = reportOf(made.stdout)
  t.alike(
    files.map(({ status, id }) => [status, id]),
    [
      ['imported', 'log-reader'],
      ['imported', 'csharpsmith'],
      ['imported', 'uber-den-wolken'],
      ['imported', 'data_miner'],
      ['imported', 'docs-writer']
    ]
  )
  t.alike(
    reportOf(dry.stdout).files.map(({ id }) => id),
    files.map(({ id }) => id)
  )
  t.alike(files[0]?.ignored, ['tools', 'model', 'color'])
  const checked = await run(['agents', 'check', path.join(home, 'agents')], { home })
  t.is(checked.code, 0, checked.stdout)
  const again = await run(['agents', 'import', source, '--runtime', 'llm', '--tier', 'L2', '--json'], { home })
  t.ok(again.code === 0 && reportOf(again.stdout).files.every(({ status }) => status === 'unchanged'), again.stdout)
})

test('agents import refuses what it cannot use with line and reason, and imports the rest', async (t) => {
  const { home, source } = await homeWith(t)
  await fs.writeFile(path.join(source, 'a.md'), '---\nname: a\ndescription: "Fast" agent\n---\nDo.\n')
  await fs.writeFile(path.join(source, 'text.md'), '---\ndescription: has the id of a starter\n---\nDo.\n')
  await fs.writeFile(
    path.join(source, 'z.md'),
    '---\nname: docs-writer\ndescription: has the id of another\n---\nDo.\n'
  )
  await fs.mkdir(path.join(home, 'agents'))
  await fs.writeFile(path.join(home, 'agents', 'data_miner.md'), agentText('data_miner'))
  const ran = await run(['agents', 'import', source, '--runtime', 'llm', '--json'], { home })
  t.is(ran.code, 8, 'partly done')
  const refused = reportOf(ran.stdout).files.flatMap(({ file, status, reason }) =>
    status === 'refused' ? [[path.basename(file), reason]] : []
  )
  t.alike(
    refused.map(([file]) => file),
    ['a.md', 'data_miner.md', 'text.md', 'z.md']
  )
  t.ok(refused[0]?.[1]?.endsWith('put the value in quotes'))
  t.ok(refused.slice(1).every(([, reason]) => reason?.includes('is taken already')))
  t.is(
    await fs.readFile(path.join(home, 'agents', 'data_miner.md'), 'utf8'),
    agentText('data_miner'),
    'nothing is overwritten'
  )
  const text = await run(['agents', 'import', path.join(source, 'a.md'), '--runtime', 'llm'], { home })
  t.ok(text.code === 78 && text.stdout.includes(`refused  ${path.join(source, 'a.md')}:3: `), text.stdout)
})

test('a dry run of agents import gives each file the status that the import gives it, also equal and different copies', async (t) => {
  const home = await tempDir(t)
  const source = path.join(home, 'source')
  const text = (does: string): string => `---\nname: same\ndescription: ${does}\n---\nDo.\n`
  const files = { a: text('one'), b: text('one'), c: text('another'), d: '---\nname: d\nx: [\n---\n', e: 'no agent' }
  await fs.mkdir(source)
  for (const [name, content] of Object.entries(files)) await fs.writeFile(path.join(source, `${name}.md`), content)
  const statuses = async (...more: string[]): Promise<string[]> => {
    const command = ['agents', 'import', source, '--runtime', 'command', '--json', ...more, '--', 'cat']
    return reportOf((await run(command, { home })).stdout).files.map(({ status }) => status)
  }
  for (const expected of [
    ['imported', 'unchanged', 'refused', 'refused', 'skipped'],
    ['unchanged', 'unchanged', 'refused', 'refused', 'skipped']
  ]) {
    t.alike(await statuses('--dry-run'), expected)
    t.alike(await statuses(), expected)
  }
})

test('ids of agents in a directory that the node remembers are taken, for new and imported agents', async (t) => {
  const { home, source } = await homeWith(t)
  const other = path.join(home, 'other')
  await fs.mkdir(other)
  await fs.writeFile(path.join(other, 'any.md'), agentText('data_miner'))
  await fs.writeFile(path.join(home, 'start.flags'), JSON.stringify({ version: 1, flags: { '--agents': [other] } }))
  const { stdout } = await run(['agents', 'import', source, '--runtime', 'llm', '--json'], { home })
  t.alike(
    reportOf(stdout).files.flatMap(({ status, reason }) => (status === 'refused' ? [reason] : [])),
    [`the agent id data_miner is taken already: ${path.join(other, 'any.md')}`]
  )
})

test('agents import says what is missing: a runtime, a model, a file', async (t) => {
  const { home, source } = await homeWith(t)
  for (const [args, words] of [
    [[source], '--runtime llm'],
    [[source, '--runtime', 'llm', '--model', 'none'], '--model takes one of local'],
    [[source, '--runtime', 'command', '--model', 'local'], '--model goes with --runtime llm'],
    [[source, '--runtime', 'llm', '--', 'cat'], '--runtime command'],
    [[path.join(home, 'nothing'), '--runtime', 'llm'], 'there is no such file']
  ] as const) {
    const ran = await run(['agents', 'import', ...args], { home })
    t.ok(ran.code === 2 && ran.stderr.includes(words), `${words}: ${ran.stderr}`)
  }
})

test('a command agent of an imported file runs the program that the file is for, with the task on its standard input', async (t) => {
  const { home } = await homeWith(t)
  const project = path.join(home, 'project')
  const [place, bin] = [path.join(project, '.claude', 'agents'), path.join(home, 'bin')]
  await fs.mkdir(place, { recursive: true })
  await fs.mkdir(bin)
  await fs.writeFile(path.join(place, 'checker.md'), '---\nname: checker\ndescription: Checks: all\n---\nCheck.\n')
  await fs.writeFile(path.join(bin, 'claude'), '#!/bin/sh\npwd\nprintf "%s|" "$@"\ncat\n', { mode: 0o755 })
  t.is((await run(['agents', 'import', place, '--runtime', 'command'], { home })).code, 0)
  const ran = await spawned(['agents', 'run', path.join(home, 'agents', 'checker.md'), '{"text":"-x"}'], {
    home,
    env: { PATH: `${bin}:${process.env['PATH']}` }
  })
  const [cwd, line = ''] = ran.stdout.split('\n')
  t.is(cwd, await fs.realpath(project), ran.stderr)
  t.ok(line.startsWith('-p|--agent=checker|Do the task') && line.includes('"input":{"text":"-x"}'), line)
})

test('directories of sub-agents in the config are checked: runtime, model and program fit', async (t) => {
  const home = await tempDir(t)
  const check = async (imports: string, llm = ''): Promise<string> => {
    await fs.writeFile(path.join(home, 'config.yaml'), `${llm}agents:\n  imports:\n    mine: ${imports}\n`)
    const ran = await run(['config', 'check'], { home })
    return ran.code === 0 ? '' : ran.stdout + ran.stderr
  }
  const local = 'llm: { providers: { local: { url: "http://127.0.0.1:9/v1" } } }\n'
  t.is(await check('{ dir: sub, runtime: llm, tier: L2 }', local), '')
  t.is(await check('{ dir: ~/.claude/agents, runtime: command, command: [cat] }'), '')
  for (const [imports, words] of [
    ['{ dir: sub, runtime: llm }', 'config.yaml:3: agents.imports.mine: has no model'],
    ['{ dir: sub, runtime: llm, model: far/x }', 'names the provider far'],
    ['{ dir: sub, runtime: module }', 'agents.imports.mine.runtime: must be llm or command'],
    ['{ runtime: command }', 'agents.imports.mine.dir: must be text'],
    ['{ dir: sub, runtime: command, model: local }', 'goes with runtime: llm only']
  ] as const) {
    const faults = await check(imports)
    t.ok(faults.includes(words), `${words}: ${faults}`)
  }
})

test('an agent file is written beside everything that is there: a link to nowhere, a directory and another file stay', async (t) => {
  const { home } = await homeWith(t)
  const [source, agents, outside] = [path.join(home, 'more'), path.join(home, 'agents'), path.join(home, 'outside.md')]
  await fs.mkdir(source)
  for (const name of ['link', 'dir', 'text', 'free'])
    await fs.writeFile(path.join(source, `${name}-x.md`), '---\ndescription: D\n---\nDo.\n')
  await fs.mkdir(path.join(agents, 'dir-x.md'), { recursive: true })
  await fs.symlink(outside, path.join(agents, 'link-x.md'))
  await fs.writeFile(path.join(agents, 'text-x.md'), 'mine')
  for (const more of [['--dry-run'], []]) {
    const ran = await run(['agents', 'import', source, '--runtime', 'llm', '--json', ...more], { home })
    t.is(ran.code, 8, ran.stderr)
    t.alike(
      reportOf(ran.stdout).files.map(({ file, status }) => `${path.basename(file)} ${status}`),
      ['dir-x.md refused', 'free-x.md imported', 'link-x.md refused', 'text-x.md refused']
    )
  }
  t.is(await fs.stat(outside).catch(() => null), null, 'nothing is written through a link')
  t.is(await fs.readFile(path.join(agents, 'text-x.md'), 'utf8'), 'mine')
})

test('a file that could not be written whole is not left, so that a later import makes it', async (t) => {
  const { home, source } = await homeWith(t)
  const open = fs.open
  t.teardown(() => {
    fs.open = open
  })
  const dir = path.join(home, 'agents')
  fs.open = async (...given) => {
    const handle = await open(...given)
    if (!String(given[0]).startsWith(dir)) return handle
    const write = handle.writeFile.bind(handle)
    handle.writeFile = async (text) => {
      await write(String(text).slice(0, 10))
      throw Object.assign(new Error('full'), { code: 'ENOSPC' })
    }
    return handle
  }
  const words = ['agents', 'import', source, '--runtime', 'llm', '--json']
  t.not((await run(words, { home })).code, 0)
  fs.open = open
  t.alike(await fs.readdir(dir), [])
  t.is((await run(words, { home })).code, 0)
})

test('agents check names the import command of each sub-agent file, which makes an agent that it takes, and exits 0', async (t) => {
  const { home, source } = await homeWith(t)
  const file = path.join(source, '.claude', 'agents', 'reviewer.md')
  await fs.mkdir(path.dirname(file), { recursive: true })
  await fs.writeFile(file, '---\nname: reviewer\ndescription: Reviews: all.\ntools: Read\n---\n\nReview.\n')
  const checked = await run(['agents', 'check', file], { home })
  t.is(checked.code, 0, checked.stderr)
  const command = `agents import ${file} --runtime command`
  t.is(checked.stdout.split('\n').length, 2, 'one line')
  t.ok(checked.stdout.includes(command), checked.stdout)
  t.is((await run(command.split(' '), { home })).code, 0)
  t.is((await run(['agents', 'check', path.join(home, 'agents', 'reviewer.md')], { home })).code, 0)
})
