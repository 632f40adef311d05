import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { removeUnused, unusedParts } from '../../src/maintenance/installed-size.js'
import { tempDir } from '../support/tmp.js'

const HOST = { platform: 'linux', arch: 'x64' }

/** Writes files of 10 bytes each. */
async function tree(root: string, files: readonly string[]): Promise<void> {
  for (const file of files) {
    await fs.mkdir(path.join(root, path.dirname(file)), { recursive: true })
    await fs.writeFile(path.join(root, file), '0123456789')
  }
}

async function pack(root: string, dir: string, manifest: object): Promise<void> {
  await fs.mkdir(path.join(root, dir), { recursive: true })
  await fs.writeFile(path.join(root, dir, 'package.json'), JSON.stringify(manifest))
}

async function left(root: string): Promise<string[]> {
  const all = await fs.readdir(root, { recursive: true, withFileTypes: true })
  return all
    .filter((one) => !one.isDirectory() && one.name !== 'package.json')
    .map((one) => path.relative(root, path.join(one.parentPath, one.name)))
    .sort()
}

/** A program with two dependencies, one of them nested, beside a package that it does not depend on. */
async function installed(t: Assert): Promise<string> {
  const root = await tempDir(t)
  const modules = path.join(root, 'node_modules')
  await pack(modules, 'program', { name: 'program', dependencies: { store: '1', absent: '1', linked: '1' } })
  await pack(modules, 'store', { name: 'store', optionalDependencies: { inner: '2' } })
  await pack(modules, 'store/node_modules/inner', { name: 'inner', dependencies: { program: '1' } })
  await pack(modules, 'stranger', { name: 'stranger' })
  await tree(modules, [
    'program/dist/main.js',
    'store/index.js',
    'store/index.js.map',
    'store/prebuilds/linux-x64/store.bare',
    'store/prebuilds/linux-x64/store.node',
    'store/prebuilds/linux-x64-musl/store.bare',
    'store/prebuilds/linux-x64-musl/store.node',
    'store/prebuilds/linux-arm64/store.node',
    'store/prebuilds/win32-x64/a/store.node',
    'store/node_modules/inner/prebuilds/darwin-arm64/inner.node',
    'store/node_modules/inner/lib/inner.mjs.map',
    'stranger/prebuilds/linux-x64/stranger.node',
    'stranger/prebuilds/win32-x64/stranger.node',
    'elsewhere/prebuilds/linux-x64/elsewhere.node',
    'elsewhere/prebuilds/win32-x64/elsewhere.node'
  ])
  await pack(modules, 'elsewhere', { name: 'linked' })
  await fs.symlink(path.join(modules, 'elsewhere'), path.join(modules, 'linked'))
  return modules
}

test('binaries for other platforms, those for Bare, and source maps of the dependencies go, and everything else stays', async (t: Assert) => {
  const modules = await installed(t)
  const before = await left(modules)
  const parts = await unusedParts(path.join(modules, 'program'), HOST)
  t.alike(
    parts.map(({ name, bytes, paths }) => [name, bytes, paths.length]),
    [
      ['store', 50, 5],
      ['inner', 10, 1]
    ],
    'a package without a binary for this platform keeps those that it has'
  )
  t.alike(await left(modules), before, 'to look removes nothing')
  await removeUnused(parts)
  const gone = before.filter((file) => /linux-arm64|store.prebuilds.win32|\.bare$|\.map$/.test(file))
  t.is(gone.length, 6)
  t.alike(
    await left(modules),
    before.filter((file) => !gone.includes(file))
  )
  t.alike(await unusedParts(path.join(modules, 'program'), HOST), [])
})

test('a machine of another platform keeps its own binaries', async (t: Assert) => {
  const modules = await installed(t)
  await removeUnused(await unusedParts(path.join(modules, 'program'), { platform: 'win32', arch: 'x64' }))
  t.alike(
    (await left(modules)).filter((file) => file.startsWith('store/prebuilds')),
    ['store/prebuilds/win32-x64/a/store.node']
  )
})
