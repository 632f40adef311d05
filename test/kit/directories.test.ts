import test from 'brittle'
import { makeDirectories } from '../../src/kit/directories.js'

/** A file system of names; `refused` says which new ones it does not take. */
function disk(names: readonly string[], refused: (dir: string) => boolean = () => false) {
  const dirs = new Set(['/', ...names])
  const parent = (dir: string): string => dir.slice(0, Math.max(1, dir.lastIndexOf('/')))
  const mkdir = (dir: string): Promise<void> => {
    if (refused(dir) || !dirs.has(parent(dir))) return Promise.reject(new Error(`ENOENT ${dir}`))
    dirs.add(dir)
    return Promise.resolve()
  }
  return { dirs, maker: { mkdir, isDirectory: (dir: string) => Promise.resolve(dirs.has(dir)), parent } }
}

test('missing directories are made from the top down', async (t) => {
  const { dirs, maker } = disk(['/a'])
  await makeDirectories('/a/b/c', maker)
  t.alike([...dirs], ['/', '/a', '/a/b', '/a/b/c'])
})

test('a refused name ends it with the error of that name', async (t) => {
  const { dirs, maker } = disk(['/proc'], (dir) => dir.startsWith('/proc/'))
  await t.exception(makeDirectories('/proc/nope/deep', maker), /ENOENT \/proc\/nope$/)
  t.alike([...dirs], ['/', '/proc'])
})

test('a directory that somebody else makes at the same moment is no error', async (t) => {
  const { dirs, maker } = disk([])
  const mkdir = async (dir: string): Promise<void> => {
    dirs.add(dir)
    throw new Error('EEXIST')
  }
  await makeDirectories('/a', { ...maker, mkdir })
  t.ok(dirs.has('/a'))
})
