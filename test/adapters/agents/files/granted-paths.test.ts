import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { GrantedPaths } from '../../../../src/adapters/agents/files/granted-paths.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

interface Place {
  readonly paths: GrantedPaths
  /** The real path of the granted directory. */
  readonly open: string
  /** A directory beside it, with the file `secret`. */
  readonly closed: string
}

async function place(t: Assert): Promise<Place> {
  const dir = await fs.realpath(await tempDir(t))
  const [open, closed] = [path.join(dir, 'open'), path.join(dir, 'open-not')]
  await fs.mkdir(path.join(open, 'sub'), { recursive: true })
  await fs.mkdir(closed)
  await fs.writeFile(path.join(open, 'a.txt'), 'hello')
  await fs.writeFile(path.join(open, 'sub', '..b'), 'dots')
  await fs.writeFile(path.join(closed, 'secret'), 'secret')
  return { paths: new GrantedPaths([open]), open, closed }
}

test('a file in a granted directory is found by relative and absolute path', async (t: Assert) => {
  const { paths, open } = await place(t)
  t.is(await paths.resolve('a.txt'), path.join(open, 'a.txt'))
  t.is(await paths.resolve(path.join(open, 'sub')), path.join(open, 'sub'))
  t.is(await paths.resolve('sub/../a.txt'), path.join(open, 'a.txt'))
  t.is(await paths.resolve('sub/..b'), path.join(open, 'sub', '..b'))
  t.is(await paths.resolve('.'), open)
})

test('neither .., nor an absolute path, nor a link leads out, and existing files there look like absent ones', async (t: Assert) => {
  const { paths, open, closed } = await place(t)
  await fs.symlink(path.join(closed, 'secret'), path.join(open, 'link'))
  await fs.symlink(closed, path.join(open, 'dir-link'))
  const messages = new Set<string>()
  for (const wanted of [
    '../open-not/secret',
    '..',
    path.join(closed, 'secret'),
    '/etc/passwd',
    'link',
    'dir-link/secret',
    'none',
    'a.txt\0',
    '',
    '/'
  ]) {
    if (wanted !== '') messages.add((await failsWith(t, 'FORBIDDEN', () => paths.resolve(wanted))).message)
  }
  t.is(messages.size, 1)
  t.ok([...messages][0]?.includes('agents.grants'))
})

test('links that stay inside are followed, and a grant may itself be a link', async (t: Assert) => {
  const { open, closed } = await place(t)
  await fs.symlink(path.join(open, 'a.txt'), path.join(open, 'link'))
  await fs.symlink(open, path.join(closed, 'grant'))
  const paths = new GrantedPaths([path.join(closed, 'grant')])
  t.is(await paths.resolve('link'), path.join(open, 'a.txt'))
})

test('without a grant, or with one that does not exist, the config key is named', async (t: Assert) => {
  for (const grants of [[], ['/no/such/directory']]) {
    const error = await failsWith(t, 'FORBIDDEN', () => new GrantedPaths(grants).resolve('a'))
    t.ok(error.message.includes('agents.grants'))
  }
})

test('only regular files are opened; a pipe holds nothing up', async (t: Assert) => {
  const { paths, open } = await place(t)
  const opened = await paths.open('a.txt')
  t.is(opened.size, 5)
  await opened.file.close()
  spawnSync('mkfifo', [path.join(open, 'pipe')])
  await failsWith(t, 'FORBIDDEN', () => paths.open('pipe'))
  await failsWith(t, 'FORBIDDEN', () => paths.open('sub'))
})

test('a directory that is swapped for a link between the look and the open leads nowhere', async (t: Assert) => {
  const { open, closed } = await place(t)
  await fs.writeFile(path.join(open, 'sub', 'secret'), 'harmless')
  class Swapped extends GrantedPaths {
    override async resolve(wanted: string): Promise<string> {
      const real = await super.resolve(wanted)
      await fs.rename(path.join(open, 'sub'), path.join(open, 'was-sub'))
      await fs.symlink(closed, path.join(open, 'sub'))
      return real
    }
  }
  await failsWith(t, 'FORBIDDEN', () => new Swapped([open]).open('sub/secret'))
})
