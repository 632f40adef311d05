import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test from 'brittle'
import { tempDir } from '../../support/tmp.js'
import { REPOSITORY, run } from '../command-line.js'

test('agents new writes a file that check takes and run runs, without a node, and never twice', async (t) => {
  const home = await tempDir(t)
  const made = await run(['agents', 'new', 'tester', '--json'], { home })
  t.is(made.code, 0, made.stderr)
  const file = path.join(home, 'agents', 'tester.md')
  const next = [`a2a-node agents check ${file}`, `a2a-node agents run ${file} '{"text":"hello"}'`, 'a2a-node start']
  t.alike(JSON.parse(made.stdout), { schema: 'a2a-node/agents-new@1', files: [{ id: 'tester', tier: null, file }], next })
  t.is((await run(['agents', 'check', file], { home })).code, 0)
  const ran = await run(['agents', 'run', file, '{"text":"hi"}', '--json'], { home })
  t.alike((JSON.parse(ran.stdout) as { result: { input: unknown } }).result.input, { text: 'hi' })
  await fs.writeFile(file, 'mine now')
  const again = await run(['agents', 'new', 'tester'], { home })
  t.is(again.code, 9)
  t.ok(again.stderr.includes('[FILE_EXISTS]') && again.stderr.includes(file), again.stderr)
  t.is(await fs.readFile(file, 'utf8'), 'mine now')
})

test('agents new says what to do next, in commands that work as they are', async (t) => {
  const home = path.join(await tempDir(t), 'my home')
  const { stdout } = await run(['agents', 'new', 'tester', '--home', home])
  const [check = '', once = '', start = ''] = stdout.split('\n').slice(2)
  const inShell = async (line: string): Promise<string> => {
    const command = line.trim().replace(/^a2a-node/, `${process.execPath} ${path.join(REPOSITORY, 'bin', 'a2a-node.js')}`)
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
