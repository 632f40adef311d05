import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { inDirectory } from '../../../../src/adapters/agents/files/open-place.js'
import { listDirectory } from '../../../../src/adapters/agents/starters/file-list.js'
import { GrantedPaths } from '../../../../src/adapters/agents/files/granted-paths.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

/** A granted directory with `sub`, and a way to put a link to a directory outside in its place. */
async function place(t: Assert) {
  const root = await fs.realpath(await tempDir(t))
  const [open, closed] = [path.join(root, 'open'), path.join(root, 'closed')]
  const sub = path.join(open, 'sub')
  await fs.mkdir(sub, { recursive: true })
  await fs.mkdir(closed)
  await fs.writeFile(path.join(sub, 'ours'), '')
  await fs.writeFile(path.join(closed, 'secret'), '')
  const swap = async (): Promise<void> => {
    await fs.rename(sub, path.join(open, 'was-sub'))
    await fs.symlink(closed, sub)
  }
  return { open, sub, swap }
}

test('an open directory stays the same one when a link is put in its place, and a link is not opened', async (t: Assert) => {
  const { open, sub, swap } = await place(t)
  const names = await inDirectory(sub, async (base) => {
    await swap()
    return await fs.readdir(base)
  })
  t.alike(names, process.platform === 'linux' ? ['ours'] : ['secret'])
  await t.exception(inDirectory(sub, async (base) => await fs.readdir(base)))
  const link = `${open}-link`
  await fs.symlink(open, link)
  await failsWith(t, 'FORBIDDEN', () => inDirectory(path.join(link, 'was-sub'), () => Promise.resolve()))
})

test('a directory that becomes a link after the look is not listed', async (t: Assert) => {
  const { open, swap } = await place(t)
  class Swapped extends GrantedPaths {
    override async resolve(wanted: string): Promise<string> {
      const real = await super.resolve(wanted)
      await swap()
      return real
    }
  }
  await t.exception(listDirectory(new Swapped([open]), 'sub'))
})
