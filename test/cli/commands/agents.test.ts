import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test from 'brittle'
import { agentText } from '../../support/agents/agent-text.js'
import { tempDir } from '../../support/tmp.js'
import { REPOSITORY, run } from '../command-line.js'

test('agents new writes a file that check takes and run runs, without a node, and never twice', async (t) => {
  const home = await tempDir(t)
  const made = await run(['agents', 'new', 'tester', '--json'], { home })
  t.is(made.code, 0, made.stderr)
  const file = path.join(home, 'agents', 'tester.md')
  const next = [`a2a-node agents check ${file}`, `a2a-node agents run ${file} '{"text":"hello"}'`, 'a2a-node start']
  t.alike(JSON.parse(made.stdout), {
    schema: 'a2a-node/agents-new@1',
    files: [{ id: 'tester', tier: null, file }],
    next
  })
  t.is((await run(['agents', 'check', file], { home })).code, 0)
  const ran = await run(['agents', 'run', file, '{"text":"hi"}', '--json'], { home })
  t.alike((JSON.parse(ran.stdout) as { result: { input: unknown } }).result.input, { text: 'hi' })
  await fs.writeFile(file, 'mine now')
  const again = await run(['agents', 'new', 'tester'], { home })
  t.is(again.code, 9)
  t.ok(again.stderr.includes('[FILE_EXISTS]') && again.stderr.includes(file), again.stderr)
  t.is(await fs.readFile(file, 'utf8'), 'mine now')
})

test('agents new gives no agent the id of another one of the node', async (t) => {
  const home = await tempDir(t)
  const starter = await run(['agents', 'new', 'text'], { home })
  t.alike([starter.code, starter.stderr.split('\n')[1]], [9, '  try: a2a-node agents new my-text'])
  const other = path.join(home, 'other')
  await fs.mkdir(other)
  await fs.writeFile(path.join(other, 'x.md'), agentText('mine'))
  await fs.writeFile(path.join(home, 'config.yaml'), `agents: { dirs: [${other}], starters: false }\n`)
  t.is((await run(['agents', 'new', 'mine'], { home })).code, 9)
  t.is((await run(['agents', 'new', 'text'], { home })).code, 0)
})

test('agents new gives no agent the id of one in a directory that start remembers', async (t) => {
  const home = await tempDir(t)
  const other = path.join(home, 'other')
  await fs.mkdir(other)
  await fs.writeFile(path.join(other, 'x.md'), agentText('mine'))
  await fs.writeFile(path.join(home, 'start.flags'), JSON.stringify({ version: 1, flags: { '--agents': [other] } }))
  t.is((await run(['agents', 'new', 'mine'], { home })).code, 9)
})

test('agents check warns of a program that is not there; the exit code stays that of a good file', async (t) => {
  const file = path.join(await tempDir(t), 'my ant.md')
  await fs.writeFile(file, agentText('ant', [], '{ type: command, command: [no-such-program-here] }'))
  const ran = await run(['agents', 'check', file])
  t.alike(ran.stdout.split('\n').slice(0, 2), [
    'ok  agent ant: subject.do',
    `warning  ${file}:7: a2a.runtime.command: no program no-such-program-here is found in PATH`
  ])
  t.is(ran.code, 0)
  const { warnings } = JSON.parse((await run(['agents', 'check', file, '--json'])).stdout) as { warnings: unknown[] }
  t.is(warnings.length, 1)
  const failed = await run(['agents', 'run', file, '{}'])
  t.ok(failed.stderr.endsWith(`  try: a2a-node agents check '${file}'\n`), failed.stderr)
})

test('agents run reports the expected input and the given one', async (t) => {
  const file = path.join(await tempDir(t), 'my ant.md')
  const input = '      input: { type: object, required: [file], properties: { file: { type: string } } }'
  await fs.writeFile(file, agentText('ant').replace('subject.do', `subject.do\n${input}`))
  const ran = await run(['agents', 'run', file, '{"fil":1}'])
  t.is(ran.code, 2)
  t.alike(ran.stderr.trimEnd().split('\n'), [
    'error: the input does not fit subject.do: it must have "file"  [INVALID_INPUT]',
    '  expected: {"file": string}',
    '  given: {"fil":1}',
    `  try: a2a-node agents run '${file}' '<json as expected>'`
  ])
})

test('agents new says what to do next, in commands that work as they are', async (t) => {
  const home = path.join(await tempDir(t), 'my home')
  const { stdout } = await run(['agents', 'new', 'tester', '--home', home])
  const [check = '', once = '', start = ''] = stdout.split('\n').slice(2)
  const inShell = async (line: string): Promise<string> => {
    const command = line
      .trim()
      .replace(/^a2a-node/, `${process.execPath} ${path.join(REPOSITORY, 'bin', 'a2a-node.js')}`)
    return (await promisify(execFile)('sh', ['-c', command])).stdout
  }
  t.ok((await inShell(check)).startsWith('ok'), check)
  t.ok((await inShell(once)).includes('"hello"'), once)
  t.is(start, `  a2a-node --home '${home}' start`)
})

test('agents new --preset planetary writes all of the preset, or the one named; wrong words are usage', async (t) => {
  const home = await tempDir(t)
  const made = await run(['agents', 'new', '--preset', 'planetary'], { home })
  t.is(made.code, 0, made.stderr)
  t.is((await fs.readdir(path.join(home, 'agents'))).length, 21)
  t.ok(/wrote .*sun\.md {2}L0\n/.test(made.stdout), made.stdout)
  t.is((await run(['agents', 'check', path.join(home, 'agents')], { home })).code, 0)
  const codes = []
  for (const words of [[], ['Bad Name'], ['x', '--preset', 'other'], ['x', 'y'], ['vulcan', '--preset', 'planetary']])
    codes.push((await run(['agents', 'new', ...words], { home: `${home}/other` })).code)
  t.alike(codes, [2, 2, 2, 2, 4])
  await t.exception(fs.stat(`${home}/other`), /ENOENT/)
})
