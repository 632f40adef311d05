import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'
import { run } from './command-line.js'

/** The output of `prune --json`. */
interface Pruned {
  readonly schema: string
  readonly root: string
  readonly packages: readonly { readonly name: string; readonly bytes: number }[]
  readonly removed: boolean
}

test('prune --dry-run lists the unused parts of the own installation, and removes nothing', async (t: Assert) => {
  const dry = await run(['prune', '--dry-run', '--json'])
  t.is(dry.code, 0, dry.stderr)
  const { schema, root, packages, removed } = JSON.parse(dry.stdout) as Pruned
  t.alike([schema, removed], ['a2a-node/prune@1', false])
  t.is((await run(['prune', '--dry-run', '--json'])).stdout, dry.stdout, 'all of it is still there')
  const text = await run(['prune', '--dry-run'])
  t.ok(text.code === 0 && !/^removed/m.test(text.stdout), root)
  for (const { name } of packages.slice(0, 3)) t.ok(text.stdout.includes(`\n${name} `), name)
})

test('prune asks where nobody can answer, and --yes removes the listed parts of its installation only', async (t: Assert) => {
  const modules = path.join(await tempDir(t), 'node_modules')
  const [root, binaries] = [path.join(modules, 'a2a-node'), path.join(modules, 'binaries')]
  await fs.mkdir(root, { recursive: true })
  for (const part of ['bin', 'dist']) await fs.cp(path.resolve(part), path.join(root, part), { recursive: true })
  // The program runs with the packages of this repository: links, which nothing is removed from.
  await fs.symlink(path.resolve('node_modules'), path.join(root, 'node_modules'))
  const manifest = { name: 'a2a-node', version: '0.0.0', type: 'module', dependencies: { binaries: '1' } }
  await fs.writeFile(path.join(root, 'package.json'), JSON.stringify(manifest))
  const files = [`${process.platform}-${process.arch}`, 'other-cpu'].map((name) => `prebuilds/${name}/a.node`)
  for (const file of files) {
    await fs.mkdir(path.join(binaries, path.dirname(file)), { recursive: true })
    await fs.writeFile(path.join(binaries, file), '0123456789')
  }
  await fs.writeFile(path.join(binaries, 'package.json'), JSON.stringify({ name: 'binaries' }))
  const prune = async (...words: string[]) => {
    const program = [path.join(root, 'bin', 'a2a-node.js'), 'prune', '--json', ...words]
    const child = await promisify(execFile)(process.execPath, program).catch((error: unknown) => error)
    return child as { readonly code?: number; readonly stdout: string }
  }
  t.is((await prune()).code, 2)
  t.alike((await fs.readdir(path.join(binaries, 'prebuilds'))).length, 2)
  const { packages, removed } = JSON.parse((await prune('--yes')).stdout) as Pruned
  t.alike([packages.map(({ name, bytes }) => [name, bytes]), removed], [[['binaries', 10]], true])
  t.alike(await fs.readdir(path.join(binaries, 'prebuilds')), [`${process.platform}-${process.arch}`])
})
