import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { tempDir } from '../support/tmp.js'

/** A config of the formatter, of which only the width counts. */
function biome(lineWidth: number): string {
  return JSON.stringify({ formatter: { lineWidth } })
}

test('a name with a banned word, a private word in a text, and a folder with more files than it may have, fail the check of the structure', async (t) => {
  const root = await tempDir(t)
  const measured = async (
    files: Readonly<Record<string, string>>
  ): Promise<{ readonly code: number | null; readonly out: string }> => {
    for (const [name, text] of Object.entries(files)) {
      await fs.mkdir(path.join(root, path.dirname(name)), { recursive: true })
      await fs.writeFile(path.join(root, name), text)
    }
    const { status, stdout } = spawnSync(process.execPath, [path.resolve('scripts/structure.mjs')], {
      cwd: root,
      encoding: 'utf8'
    })
    return { code: status, out: stdout }
  }
  const clean = await measured({
    'src/node/a.ts': 'export const beaten = 1\n',
    'biome.json': biome(120),
    'test/node/a.test.ts': '\n',
    'docs/A.md': '- one | two |\n',
    'docs/ARCHITECTURE.md': 'three\n',
    'README.md': 'four\n'
  })
  t.is(clean.code, 0)
  t.ok(/^ +3 {2}marks of docs that are no words$/m.test(clean.out), clean.out)
  t.ok(
    /^ +3 {2}words of docs \(at most \d+\)$/m.test(clean.out) &&
      /1 of 1 {2}files of src\/node with a test/.test(clean.out),
    clean.out
  )
  const named = await measured({ 'src/node/b.ts': 'export class RequestBook {}\n' })
  t.is(named.code, 1)
  t.ok(named.out.includes('src/node/b.ts:1 RequestBook'), named.out)
  const worded = await measured({
    'src/node/b.ts':
      "/** The seat of a node; `kind: 'seat'` stands on the wire. */\nexport const b = { kind: 'seat' }\n"
  })
  t.is(worded.code, 1)
  t.alike(worded.out.match(/src\/node\/b\.ts:\d+ \w+/g), ['src/node/b.ts:1 seat'], 'not the quoted ones')
  const printed = await measured({
    'src/node/b.ts': [
      "export const b = ['lease', 'swarm-lease', 'the lease ended', 'GIVEN BACK ', `epoch ${'x'} of it`, 'please wait']",
      'export const c = `${b.length} leases`',
      '// The lease of an epoch is given back.',
      ''
    ].join('\n')
  })
  t.is(printed.code, 1)
  t.alike(
    printed.out.match(/src\/node\/b\.ts:\d+ .*/g),
    [
      'src/node/b.ts:1 the lease ended',
      'src/node/b.ts:1 GIVEN BACK ',
      'src/node/b.ts:1 epoch \0 of it',
      'src/node/b.ts:2 \0 leases'
    ],
    'printed texts alone'
  )
  const tested = await measured({
    'src/node/b.ts': '',
    'src/node/c.ts': `${Array.from({ length: 8 }, (_, at) => `export const c${at} = ${at}\n`).join('')}export const own = 1\nexport const twice = own\n`,
    'src/node/d.ts': "import { twice } from './c.js'\nconsole.log(twice)\n",
    'src/node/e.ts': 'export const lazy = 1\n',
    'src/index.ts': "export const open = () => import('./node/e.js')\n",
    'test/node/c.test.ts': "import { c0 } from '../../src/node/c.js'\n"
  })
  t.is(tested.code, 1)
  t.ok(/^ +9 {2}symbols of src that only tests use \(at most 7\) {2}OVER$/m.test(tested.out), tested.out)
  t.ok(tested.out.includes('src/node/c.ts c0') && tested.out.includes('src/node/a.ts beaten'), tested.out)
  const many = await measured({
    ...Object.fromEntries(['c', 'd', 'e'].map((name) => [`src/node/${name}.ts`, ''])),
    'src/index.ts': '',
    'src/node/b.ts': '',
    ...Object.fromEntries(Array.from({ length: 26 }, (_, at) => [`src/kit/k${at}.ts`, '']))
  })
  t.is(many.code, 1)
  t.ok(many.out.includes('src/kit,26'), many.out)
})

test('a clause in the place of a noun is counted in comments, a question and a noun with a clause are not', async (t) => {
  const root = await tempDir(t)
  for (const dir of ['src/node', 'test', 'docs']) await fs.mkdir(path.join(root, dir), { recursive: true })
  const comments = [
    '/** What waits. */',
    '/** What waits? */',
    '/** Messages that wait. */',
    '/** Tells whoever asks, so many times. */'
  ]
  await fs.writeFile(path.join(root, 'biome.json'), biome(120))
  await fs.writeFile(
    path.join(root, 'src/node/a.ts'),
    comments.map((one, at) => `${one}\nexport const a${at} = ${at}\n`).join('')
  )
  for (const file of ['README.md', 'docs/ARCHITECTURE.md']) await fs.writeFile(path.join(root, file), 'one\n')
  const { stdout } = spawnSync(process.execPath, [path.resolve('scripts/structure.mjs'), '--list'], {
    cwd: root,
    encoding: 'utf8'
  })
  t.alike(stdout.match(/a\.ts:\d+ .*[.?]$/gm), ['a.ts:1 What waits.', 'a.ts:7 Tells whoever asks, so many times.'])
})

test('a private word or a clause as a noun in a title or a message of a test fails the check, a name of that kind in its code does not', async (t) => {
  const root = await tempDir(t)
  for (const dir of ['src/node', 'test/node', 'docs']) await fs.mkdir(path.join(root, dir), { recursive: true })
  await fs.writeFile(path.join(root, 'biome.json'), biome(120))
  await fs.writeFile(path.join(root, 'src/node/a.ts'), 'export const a = 1\n')
  for (const file of ['README.md', 'docs/ARCHITECTURE.md']) await fs.writeFile(path.join(root, file), 'one\n')
  const titles = [
    'a message is told',
    'what waits is sent',
    'a node is sent; what waits stays',
    'it goes to whoever asks',
    'a room'
  ]
  const messages = [
    't.ok(told, `${held}: so many wait`)',
    "t.is(told, 'held', 'one is held')",
    "test('a message ' + 'is held', () => {})",
    "group.test('a card is told', () => {})",
    "await untilTrue(() => told, 'it is told')"
  ]
  const good = ["test('a message waits', (t) => t.is(told, 'what waits'))", 't.ok(told, `${held} messages`)']
  const lines = [...titles.map((title) => `test('${title}', () => {})`), ...messages, ...good]
  await fs.writeFile(path.join(root, 'test/node/a.test.ts'), `${lines.join('\n')}\n`)
  const { status, stdout } = spawnSync(process.execPath, [path.resolve('scripts/structure.mjs')], {
    cwd: root,
    encoding: 'utf8'
  })
  t.is(status, 1)
  const expected = [
    ...titles,
    ': so many wait',
    'one is held',
    'a message is held',
    'a card is told',
    'it is told'
  ].map((text, at) => `a.test.ts:${at + 1} ${text}`)
  t.alike(stdout.match(/a\.test\.ts:\d+ .*$/gm), expected)
})

test('a line over the width of the formatter is counted, unless a text in it or a comment for tools makes it too long', async (t) => {
  const root = await tempDir(t)
  for (const dir of ['src/node', 'test', 'docs']) await fs.mkdir(path.join(root, dir), { recursive: true })
  await fs.writeFile(path.join(root, 'biome.json'), biome(40))
  for (const file of ['README.md', 'docs/ARCHITECTURE.md']) await fs.writeFile(path.join(root, file), 'one\n')
  const words = 'eight words of which no word is long'
  const lines = [
    `/** A comment, ${words}. */`,
    `export const a = '${words}'`,
    `export const b = '${words}' + [1, 2, 3, 4, 5, 6, 7, 8, 9].join()`,
    `// oxlint-disable-next-line ${words}`,
    `// https://example.org/${words.replaceAll(' ', '/')}`,
    `export const c = \`\${[1].join('the')}`,
    `${words}, ${words}\``,
    `export const d = /${words}/`
  ]
  await fs.writeFile(path.join(root, 'src/node/a.ts'), `${lines.join('\n')}\n`)
  const { stdout } = spawnSync(process.execPath, [path.resolve('scripts/structure.mjs'), '--list'], {
    cwd: root,
    encoding: 'utf8'
  })
  t.alike(stdout.match(/a\.ts:\d+ \d+$/gm), ['a.ts:1 55', 'a.ts:3 92'])
})
