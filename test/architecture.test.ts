import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import { fencesOf } from './support/markdown.js'

/** What `scripts/check-layers.mjs` offers. Scripts are not compiled; tests run in the root of the repository. */
interface Layers {
  readonly FEATURES: Readonly<Record<string, readonly string[]>>
  readonly LAYERS: Readonly<Record<string, { readonly layers: readonly string[] | '*' }>>
  check(root?: string): string[]
  importsOf(text: string): Iterable<{ spec: string; type: boolean }>
  packageOf(spec: string): string | null
}

/** Packages that shipped code must be built on. */
const REQUIRED = [
  'hyperswarm',
  'hypercore',
  'corestore',
  'autobase',
  'b4a',
  'compact-encoding',
  'commander',
  'yjs',
  'zod'
]
/** Those whose issue is not done. The list only shrinks: one that is imported must leave it. */
const PENDING: readonly string[] = []
/** Properties of the specification a2a-mcp-mesh that a test must hold. */
const PROPERTIES = Array.from({ length: 34 }, (_, index) => index + 1)
/** Those without a test yet. The list only shrinks: one that has a test must leave it. */
const PENDING_PROPERTIES: readonly number[] = []

async function layers(): Promise<Layers> {
  return (await import(pathToFileURL(path.resolve('scripts/check-layers.mjs')).href)) as Layers
}

function sources(): string[] {
  const names = fs.readdirSync('src', { recursive: true, encoding: 'utf8' })
  return names.filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts')).map((name) => path.join('src', name))
}

/** The drawings of ARCHITECTURE.md. */
function drawings(): string[] {
  const fences = fencesOf(fs.readFileSync('docs/ARCHITECTURE.md', 'utf8'))
  return fences.filter(({ language }) => language === 'mermaid').map(({ text }) => text)
}

/** The arrows of one kind in a drawing that stand alone on their lines, as `from > to & to`. */
function edgesOf(drawing: string, arrow: string): string[] {
  const line = new RegExp(String.raw`^ +(\w+) ${arrow} ([\w& ]+)$`)
  return drawing.split('\n').flatMap((text) => line.exec(text)?.slice(1).join(' > ') ?? [])
}

test('no layer imports a module that its row of the table does not allow', async (t) => {
  t.alike((await layers()).check('src'), [])
})

test('each folder of src/node is in the table of features, behind the folders it may import, and ARCHITECTURE.md draws that table', async (t) => {
  const { FEATURES } = await layers()
  const features = Object.entries(FEATURES)
  const folders = fs.readdirSync('src/node', { withFileTypes: true }).filter((one) => one.isDirectory())
  t.alike(features.map(([name]) => name).toSorted(), folders.map(({ name }) => name).toSorted())
  for (const [at, [name, below]] of features.entries())
    for (const one of below)
      t.ok(
        features.slice(0, at).some(([other]) => other === one),
        `${name} stands behind ${one}: there is no circle`
      )
  const drawn = edgesOf(drawings()[0] ?? '', '-->')
  const expected = features.flatMap(([name, below]) => (below.length === 0 ? [] : [`${name} > ${below.join(' & ')}`]))
  t.alike(drawn, expected)
  const text = fs.readFileSync('docs/ARCHITECTURE.md', 'utf8')
  for (const [name] of features) t.ok(text.includes(`| \`${name}\` |`), `${name} is described`)
})

test('ARCHITECTURE.md has three drawings: the first has the layers that each layer may import, and the files that any names exist', async (t) => {
  const { LAYERS } = await layers()
  const all = drawings()
  t.is(all.length, 3)
  const idOf = (name: string): string => (name === '' ? 'entries' : path.basename(name.replace('/*', '')))
  const expected = Object.entries(LAYERS).flatMap(([name, { layers: below }]) => {
    const targets = below === '*' ? ['all'] : below.map(idOf)
    return targets.length === 0 ? [] : [`${idOf(name)} > ${targets.join(' & ')}`]
  })
  t.alike(edgesOf(all[0] ?? '', '==>').toSorted(), expected.toSorted())
  const files = sources()
  const named = all.flatMap((drawing) => [...drawing.matchAll(/[\w/-]+\.ts/g)].map(([name]) => name))
  t.ok(named.length > 20)
  for (const name of named)
    t.ok(
      files.some((file) => `/${file}`.endsWith(`/${name}`)),
      name
    )
})

test('shipped code is built on the packages it says, by real imports', async (t) => {
  const { importsOf, packageOf } = await layers()
  const imported = new Set<string | null>()
  for (const file of sources()) {
    for (const { spec, type } of importsOf(fs.readFileSync(file, 'utf8'))) if (!type) imported.add(packageOf(spec))
  }
  t.alike(
    REQUIRED.filter((name) => !imported.has(name)),
    PENDING,
    'imported ones leave the list of pending ones'
  )
})

test('files are kebab-case nouns and none is a drawer for everything', (t) => {
  const bad = sources().filter((file) => {
    const names = path.relative('src', file).split(path.sep)
    return (
      !names.every((name) => /^[a-z0-9]+(-[a-z0-9]+)*(\.tsx?)?$/.test(name)) ||
      /(utils?|helpers?|manager|common)\b/.test(file)
    )
  })
  t.alike(bad, [])
})

test('tests stand where their sources stand', (t) => {
  const names = fs.readdirSync('test', { recursive: true, encoding: 'utf8' })
  const rooms = fs
    .readdirSync('src', { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  const lost = names
    .filter((name) => name.endsWith('.test.ts') && rooms.includes(name.split(path.sep)[0] ?? ''))
    .filter((name) => !fs.existsSync(path.join('src', path.dirname(name))))
  t.alike(lost, [])
})

test('each property of the specification has a test under its title, or is pending', (t) => {
  const names = fs.readdirSync('test', { recursive: true, encoding: 'utf8' })
  const text = names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => fs.readFileSync(path.join('test', name), 'utf8'))
    .join('\n')
  const titles = text.matchAll(/^test\('Feature: a2a-mcp-protocols, Property (\d+): \w/gm)
  const proven = new Set([...titles].map(([, number]) => Number(number)))
  t.alike(
    PROPERTIES.filter((number) => !proven.has(number)),
    PENDING_PROPERTIES,
    'one that has a test leaves the list of pending ones; none may lose its test'
  )
  t.ok([...proven].every((number) => PROPERTIES.includes(number)))
})
