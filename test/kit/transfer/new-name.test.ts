import test from 'brittle'
import { giveNewName, type Renaming } from '../../../src/kit/transfer/new-name.js'

/** A file system of names that refuses links with a code. */
function names(given: readonly string[], linkCode?: string): Renaming & { readonly names: Set<string> } {
  const all = new Set(given)
  const refuse = async (code: string): Promise<never> => await Promise.reject(Object.assign(new Error(code), { code }))
  const add = async (to: string): Promise<void> => await Promise.resolve(void all.add(to))
  return {
    names: all,
    link: async (_from, to) => {
      if (linkCode !== undefined) return await refuse(linkCode)
      return all.has(to) ? await refuse('EEXIST') : await add(to)
    },
    unlink: async (file) => await Promise.resolve(all.delete(file)),
    rename: async (from, to) => {
      all.delete(from)
      await add(to)
    },
    lstat: async (file) => (all.has(file) ? await Promise.resolve() : await refuse('ENOENT'))
  }
}

test('a file gets a free name, with and without hard links', async (t) => {
  for (const code of [undefined, 'EPERM', 'ENOTSUP', 'ENOSYS']) {
    const files = names(['from'], code)
    await giveNewName('from', 'to', files)
    t.alike([...files.names], ['to'], code ?? 'with links')
  }
})

test('a name in use keeps its file, and another fault of a link renames nothing', async (t) => {
  for (const [given, code] of [
    [['from', 'to'], undefined],
    [['from', 'to'], 'EPERM'],
    [['from'], 'EXDEV']
  ] as const) {
    const files = names(given, code)
    await t.exception(giveNewName('from', 'to', files))
    t.alike([...files.names], given)
  }
})
