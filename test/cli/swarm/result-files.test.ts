import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ResultFiles } from '../../../src/cli/swarm/result-files.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { SwarmResults } from '../../../src/ports/swarm-api.js'
import { codeOf } from '../../contracts/node-api.js'
import { tempDir } from '../../support/tmp.js'

type Result = SwarmResults['results'][number]

function result(item: string, value: unknown): Result {
  return { item, agent: 'text@b', attempt: 1, status: 'completed', result: value, error: null, durationMs: 1 }
}

function found(results: readonly Result[]): SwarmResults {
  return { id: 'swarm_fake', status: 'partial', results }
}

test('each result is a file in its form, and results.json lists all with their files', async (t: Assert) => {
  const directory = path.join(await tempDir(t), 'new', 'out')
  const error = new NodeError('TASK_FAILED', 'exit code 3').toBody()
  const files = await ResultFiles.open(directory)
  const count = await files.write(
    found([
      result('src/a.ts', { words: 1 }),
      result('line of text', 'plain\n'),
      result('b', new Uint8Array([0, 255])),
      { ...result('c', null), status: 'failed', error }
    ])
  )
  t.is(count, 4)
  const names = ['1-src_a.ts.json', '2-line_of_text.txt', '3-b.bin', '4-c.error.json', 'results.json']
  t.alike((await readdir(directory)).toSorted(), names)
  const [a = '', text = '', bytes = '', failed = '', index = ''] = names.map((name) => path.join(directory, name))
  t.alike(JSON.parse(await readFile(a, 'utf8')), { words: 1 })
  t.is(await readFile(text, 'utf8'), 'plain\n')
  t.alike(new Uint8Array(await readFile(bytes)), new Uint8Array([0, 255]))
  t.is((JSON.parse(await readFile(failed, 'utf8')) as { code: string }).code, 'TASK_FAILED')
  const listed = JSON.parse(await readFile(index, 'utf8')) as { status: string; results: { file: string }[] }
  t.is(listed.status, 'partial')
  t.alike(
    listed.results.map(({ file }) => file),
    names.slice(0, 4)
  )
})

test('no item names a file outside of the directory, hides it or replaces another', async (t: Assert) => {
  const root = await tempDir(t)
  const directory = path.join(root, 'out')
  const items = [
    '../../up',
    '/etc/passwd',
    '.hidden',
    '',
    '..',
    'results.json',
    'same',
    'same',
    'a\u001b[2J\nb',
    'é'.repeat(300)
  ]
  const files = await ResultFiles.open(directory)
  await files.write(found(items.map((item) => result(item, 'x'))))
  t.alike(await readdir(root), ['out'])
  const names = await readdir(directory)
  t.is(names.length, items.length + 1)
  for (const name of names) t.ok(/^(\d\d-[\p{L}\p{N}][\p{L}\p{N}._-]{0,39}\.txt|results\.json)$/u.test(name), name)
})

test('a directory with content, a file and a place without permission are refused, with a directory that is free', async (t: Assert) => {
  const root = await tempDir(t)
  const full = path.join(root, 'full')
  await mkdir(full)
  await writeFile(path.join(full, 'mine'), 'mine')
  await mkdir(`${full}-2`)
  const error = await ResultFiles.open(`${full}/`).then(
    () => null,
    (thrown: unknown) => thrown as NodeError
  )
  t.is(error?.code, 'FILE_EXISTS')
  t.alike(error?.next, [`--results files=${full}-3`])
  t.is(await codeOf(ResultFiles.open(path.join(full, 'mine'))), 'FILE_EXISTS')
  t.is(await codeOf(ResultFiles.open(path.join(full, 'mine', 'below'))), 'FILE_EXISTS')
  t.is(await codeOf(ResultFiles.open(path.join(root, 'x'.repeat(300)))), 'USAGE')
  t.alike(await readdir(full), ['mine'])
})

test('discarded directories are removed only where this command made them and they are empty', async (t: Assert) => {
  const root = await tempDir(t)
  const deep = await ResultFiles.open(path.join(root, 'one', 'two'))
  await deep.discard()
  t.alike(await readdir(root), [])
  await mkdir(path.join(root, 'mine'))
  const given = await ResultFiles.open(path.join(root, 'mine'))
  await given.discard()
  t.ok((await stat(path.join(root, 'mine'))).isDirectory(), 'an empty directory that existed stays')
  const used = await ResultFiles.open(path.join(root, 'used', 'out'))
  await writeFile(path.join(root, 'used', 'other'), '')
  await used.discard()
  t.alike(await readdir(path.join(root, 'used')), ['other'])
})

test('a file that another program wrote meanwhile stays, and the error names the command for the results', async (t: Assert) => {
  const directory = path.join(await tempDir(t), 'out')
  const files = await ResultFiles.open(directory)
  await writeFile(path.join(directory, '1-a.txt'), 'theirs')
  const error = await files.write(found([result('a', 'ours')])).then(
    () => null,
    (thrown: unknown) => thrown as NodeError
  )
  t.alike([error?.code, error?.next], ['FILE_EXISTS', ['a2a-node swarm results swarm_fake']])
  t.is(await readFile(path.join(directory, '1-a.txt'), 'utf8'), 'theirs')
})
