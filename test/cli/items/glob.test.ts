import { mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { globFiles, isGlob } from '../../../src/cli/items/glob.js'
import { codeOf } from '../../contracts/node-api.js'
import { tempDir } from '../../support/tmp.js'

async function tree(t: Assert, files: readonly string[]): Promise<string> {
  const dir = await tempDir(t)
  for (const file of files) {
    await mkdir(path.join(dir, path.dirname(file)), { recursive: true })
    await writeFile(path.join(dir, file), '')
  }
  return dir
}

const FILES = [
  'a.ts',
  'b.md',
  '.hidden.ts',
  'src/one.ts',
  'src/two.js',
  'src/deep/er/three.ts',
  'src/.git/x.ts',
  'node_modules/m/i.ts',
  'test/one.ts'
]

test('a star stays within one directory, two stars go through all', async (t: Assert) => {
  const dir = await tree(t, FILES)
  t.alike(await globFiles('*.ts', dir), ['a.ts'])
  t.alike(await globFiles('src/*', dir), ['src/one.ts', 'src/two.js'])
  t.alike(await globFiles('**/*.ts', dir), ['a.ts', 'src/deep/er/three.ts', 'src/one.ts', 'test/one.ts'])
  t.alike(await globFiles('src/**', dir), ['src/deep/er/three.ts', 'src/one.ts', 'src/two.js'])
  t.alike(await globFiles('src/**/three.ts', dir), ['src/deep/er/three.ts'])
  t.alike(await globFiles('**/one.ts', dir), ['src/one.ts', 'test/one.ts'])
})

test('braces, question marks and classes', async (t: Assert) => {
  const dir = await tree(t, FILES)
  t.alike(await globFiles('{src,test}/one.{ts,js}', dir), ['src/one.ts', 'test/one.ts'])
  t.alike(await globFiles('?.ts', dir), ['a.ts'])
  t.alike(await globFiles('[a-b].*', dir), ['a.ts', 'b.md'])
  t.alike(await globFiles('[!a].*', dir), ['b.md'])
  t.alike(await globFiles('{a.ts,src/{one.ts,two.js}}', dir), ['a.ts', 'src/one.ts', 'src/two.js'])
})

test('node_modules, .git and hidden files only when they are named', async (t: Assert) => {
  const dir = await tree(t, FILES)
  t.alike(await globFiles('node_modules/**/*.ts', dir), ['node_modules/m/i.ts'])
  t.alike(await globFiles('src/.git/*', dir), ['src/.git/x.ts'])
  t.alike(await globFiles('.*.ts', dir), ['.hidden.ts'])
  t.alike(await globFiles('*/m/*', dir), [])
})

test('absolute patterns and patterns with .. keep their form', async (t: Assert) => {
  const dir = await tree(t, FILES)
  t.alike(await globFiles(`${dir}/*.ts`, '/'), [`${dir}/a.ts`])
  t.alike(await globFiles('../*.md', path.join(dir, 'src')), ['../b.md'])
})

test('of links only those to regular files are given', async (t: Assert) => {
  const dir = await tree(t, ['a.ts', 'sub/b.ts'])
  await symlink(path.join(dir, 'a.ts'), path.join(dir, 'link.ts'))
  await symlink(path.join(dir, 'sub'), path.join(dir, 'dir.ts'))
  await symlink('/no/such/file', path.join(dir, 'dangling.ts'))
  t.alike(await globFiles('*.ts', dir), ['a.ts', 'link.ts'])
})

test('a circle of links ends', async (t: Assert) => {
  const dir = await tree(t, ['a/b.ts'])
  await symlink(dir, path.join(dir, 'a', 'loop'))
  t.alike(await globFiles('**/*.ts', dir), ['a/b.ts'])
})

test('too many alternatives in braces are USAGE, not memory', async (t: Assert) => {
  t.is(await codeOf(globFiles('{a,b}'.repeat(20), '/nowhere')), 'USAGE')
})

test('one part of a pattern matches as a regular expression would', async (t: Assert) => {
  const names = ['a', 'b', 'ab', 'ba', 'aab', 'abc', 'aabb', 'cab', 'abab']
  const dir = await tree(t, names)
  const pattern = fc
    .string({ unit: fc.constantFrom('a', 'b', '*', '?'), minLength: 1, maxLength: 6 })
    .filter((one) => one !== '**')
  await fc.assert(
    fc.asyncProperty(pattern, async (one) => {
      const expression = new RegExp(`^${one.replaceAll('*', '.*').replaceAll('?', '.')}$`)
      const found = await globFiles(one, dir)
      return JSON.stringify(found) === JSON.stringify(names.filter((name) => expression.test(name)).sort())
    }),
    { numRuns: 200 }
  )
  t.ok(isGlob('a*') && isGlob('{a,b}') && !isGlob('src/a.ts'))
})
