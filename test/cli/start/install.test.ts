import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { installation, joinLines } from '../../../src/cli/start/install.js'
import { tempDir } from '../../support/tmp.js'
import { REPOSITORY } from '../command-line.js'

/** Writes a package a2a-node 1.2.3 into a directory. */
async function packageIn(dir: string, own?: unknown): Promise<string> {
  await mkdir(dir, { recursive: true })
  await writeFile(
    path.join(dir, 'package.json'),
    JSON.stringify({ name: 'a2a-node', version: '1.2.3', 'a2a-node': own })
  )
  return dir
}

test('only a package that says that it is published is installed by its name', async (t: Assert) => {
  const root = await tempDir(t)
  const install = 'npm install --global a2a-node'
  t.alike(await installation(await packageIn(root, { published: true })), {
    needs: null,
    command: install,
    here: install
  })
  for (const own of [undefined, { published: false }, { published: 'yes' }, null]) {
    const { command } = await installation(await packageIn(root, own))
    t.is(command, 'npm install --global ./a2a-node-1.2.3.tgz', JSON.stringify(own))
  }
  t.alike(joinLines({ needs: null, command: install }), [
    'On another machine:',
    `  ${install} && a2a-node start --join -`
  ])
})

test('a repository names its packed file, or the command that makes it', async (t: Assert) => {
  const root = await packageIn(path.join(await tempDir(t), 'a clone'))
  t.is((await installation(root)).needs, `a2a-node-1.2.3.tgz (npm pack '${root}')`)
  await writeFile(path.join(root, 'a2a-node-1.2.3.tgz'), '')
  const { needs, here } = await installation(root)
  t.alike([needs, here], [`'${root}/a2a-node-1.2.3.tgz'`, `npm install --global '${root}/a2a-node-1.2.3.tgz'`])
})

test('an installed package names the packed file that npm installed, while it is there', async (t: Assert) => {
  const project = await tempDir(t)
  const root = await packageIn(path.join(project, 'node_modules', 'a2a-node'))
  const unknown = 'a2a-node-1.2.3.tgz (the packed file of this version)'
  t.is((await installation(root)).needs, unknown, 'a global installation')
  const manifest = path.join(project, 'package.json')
  for (const dependency of ['file:../a2a-node-1.2.3.tgz', 'file:gone.tgz', '^1.2.3']) {
    await writeFile(manifest, JSON.stringify({ dependencies: { 'a2a-node': dependency } }))
    t.is((await installation(root)).needs, unknown, dependency)
  }
  await writeFile(manifest, JSON.stringify({ dependencies: { 'a2a-node': 'file:packed.tgz' } }))
  await writeFile(path.join(project, 'packed.tgz'), '')
  t.is((await installation(root)).needs, path.join(project, 'packed.tgz'))
  await writeFile(manifest, '{')
  t.is((await installation(root)).needs, unknown, 'a damaged manifest')
})

test('no text names a package to install that the registry lacks', async (t: Assert) => {
  const { 'a2a-node': own, files } = JSON.parse(await readFile(path.join(REPOSITORY, 'package.json'), 'utf8')) as {
    'a2a-node': { published: boolean }
    files: string[]
  }
  if (own.published) return t.pass('it is published')
  const named = /\b(?:npm (?:i|install|add)(?: -g| --global)?|npx(?: -y| --yes)?|npm exec(?: --)?) a2a-node\b/
  const places = ['src', ...files.filter((one) => !['bin', 'dist', 'LICENSE'].includes(one))]
  for (const place of places) {
    const all = place.endsWith('.md') ? [''] : await readdir(path.join(REPOSITORY, place), { recursive: true })
    for (const name of all.filter((one) => one === '' || /\.(?:ts|md)$/.test(one))) {
      const text = await readFile(path.join(REPOSITORY, place, name), 'utf8')
      t.absent(named.test(text), `${place}/${name}: ${named.exec(text)?.[0] ?? ''}`)
    }
  }
})
