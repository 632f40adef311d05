import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import type { Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'

interface Checker {
  check(dir: string): string[]
}

async function checkOf(script: string): Promise<Checker['check']> {
  return ((await import(pathToFileURL(path.resolve('scripts', script)).href)) as Checker).check
}

async function dirWith(t: Assert, files: Readonly<Record<string, string | object>>): Promise<string> {
  const dir = await tempDir(t)
  for (const [name, content] of Object.entries(files)) {
    await fs.mkdir(path.join(dir, path.dirname(name)), { recursive: true })
    await fs.writeFile(path.join(dir, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return dir
}

test('exported symbols without a doc comment are found, others are not asked for one', async (t) => {
  const check = await checkOf('check-docs.mjs')
  const dir = await dirWith(t, {
    'good.ts':
      '/** Said. */\nexport const a = 1\nconst b = 2\n/** Said. */\nexport class C {\n  /** Said. */\n  open() {}\n  #x() {}\n  private y() {}\n}\n',
    'port.ts': '/** Said at the port. */\nexport class D implements P {\n  open() {}\n}\n',
    'types/t.d.ts': 'declare module "x" { export const y: 1 }\n'
  })
  t.alike(check(dir), [])
  const faults: Readonly<Record<string, string>> = {
    'const a = 1': 'a',
    'function f() {}': 'f',
    'interface I { x: 1 }': 'I',
    'type T = 1': 'T',
    'class K {}': 'K'
  }
  for (const [text, name] of Object.entries(faults)) {
    const found = check(await dirWith(t, { 'x.ts': `// not a doc comment\nexport ${text}\n` }))
    t.ok(found.length === 1 && found[0]?.includes(`:2 ${name} has no doc comment`), text)
  }
  t.is(check(await dirWith(t, { 'x.ts': 'const a = 1\nexport { a }\n' })).length, 1)
  t.is(check(await dirWith(t, { 'x.ts': '/** Said. */\nexport class C {\n  open() {}\n}\n' })).length, 1)
  t.is(check(await dirWith(t, { 'x.ts': '/** */\nexport const empty = 1\n' })).length, 1)
})

test('a link of a doc comment to a name that is nowhere declared is found', async (t) => {
  const check = await checkOf('check-docs.mjs')
  const other = 'export class Other {\n  /** Said. */\n  run() {}\n}\n'
  const dir = (link: string): Promise<string> =>
    dirWith(t, { 'a.ts': `/** See {@link ${link}}. */\nexport const a = 1\n`, 'b.ts': `/** Said. */\n${other}` })
  for (const link of ['a', 'Other', 'Other.run']) t.alike(check(await dir(link)), [], link)
  for (const link of ['Gone', 'Other.gone'])
    t.ok(check(await dir(link))[0]?.endsWith(`a.ts:1 {@link ${link}} names nothing`), link)
})

test('a script that runs at installation, and a version that may change tomorrow, are found', async (t) => {
  const check = await checkOf('check-install-scripts.mjs')
  const own = { dependencies: { dep: '1.0.0' } }
  const lock = (entry: object): object => ({
    packages: { '': own, 'node_modules/dep': { version: '1.0.0', ...entry } }
  })
  const good = { 'package.json': own, 'package-lock.json': lock({}), 'node_modules/dep/package.json': {} }
  t.alike(check(await dirWith(t, good)), [])
  const table: readonly (readonly [string, Readonly<Record<string, string | object>>])[] = [
    ['has an install script', { 'package-lock.json': lock({ hasInstallScript: true }) }],
    [
      'is tied to https://registry.example',
      { 'package-lock.json': lock({ resolved: 'https://registry.example/dep.tgz' }) }
    ],
    ['has a binding.gyp', { 'node_modules/dep/binding.gyp': '{}' }],
    ['has a script postinstall', { 'node_modules/dep/package.json': { scripts: { postinstall: 'node x.js' } } }],
    ['package.json: has a script install', { 'package.json': { ...own, scripts: { install: 'node x.js' } } }],
    ['is not pinned to one version', { 'package.json': { dependencies: { dep: '^1.0.0' } } }],
    ['is not pinned to one version', { 'package.json': { dependencies: { dep: 'npm:other@^1.0.0' } } }],
    ['package.json says 1.0.1', { 'package.json': { dependencies: { dep: 'npm:@any/other@1.0.1' } } }],
    ['package.json says 1.0.1', { 'package.json': { dependencies: { dep: '1.0.1' } } }]
  ]
  for (const [expected, files] of table) {
    const found = check(await dirWith(t, { ...good, ...files }))
    t.ok(found.length === 1 && found[0]?.includes(expected), `${expected}: ${found.join('; ')}`)
  }
})
