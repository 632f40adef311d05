import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { makeDataDirs } from '../../../../src/adapters/storage/home/data-dir.js'
import { asNobody } from '../../../support/as-nobody.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

async function modeOf(file: string): Promise<string> {
  return ((await fs.stat(file)).mode & 0o7777).toString(8)
}

function dirsOf(home: string): { home: string; dirs: string[] } {
  return { home, dirs: ['store', 'run', 'audit'].map((name) => path.join(home, name)) }
}

test('every directory is made for this user alone', async (t) => {
  const home = path.join(await tempDir(t), 'deep', 'home')
  await makeDataDirs(dirsOf(home))
  for (const dir of [home, path.join(home, 'store'), path.join(home, 'run'), path.join(home, 'audit')])
    t.is(await modeOf(dir), '700', dir)
})

test('making them again changes nothing', async (t) => {
  const home = path.join(await tempDir(t), 'home')
  await makeDataDirs(dirsOf(home))
  await fs.writeFile(path.join(home, 'store', 'data'), 'kept')
  await makeDataDirs(dirsOf(home))
  t.is(await fs.readFile(path.join(home, 'store', 'data'), 'utf8'), 'kept')
})

test('a directory that may not be written is NO_PERMISSION and nothing is left', async (t) => {
  const dir = await tempDir(t)
  await fs.chmod(dir, 0o755)
  const closed = path.join(dir, 'closed')
  await fs.mkdir(closed, { mode: 0o555 })
  await fs.chmod(closed, 0o555)
  const home = path.join(closed, 'home')
  const code = asNobody(`
    const { makeDataDirs } = await load('adapters/storage/home/data-dir.js');
    /* become */
    try { await makeDataDirs({ home: '${home}', dirs: ['${home}/run'] }); console.log('made') } catch (error) { console.log(error.code) }
  `)
  t.is(code, 'NO_PERMISSION')
  t.alike(await fs.readdir(closed), [])
})

test('files that another start put into a directory meanwhile stay when this one cannot make all of them', async (t) => {
  const home = path.join(await tempDir(t), 'home')
  const many = Array.from({ length: 100 }, (_, number) => path.join(home, String(number)))
  const making = makeDataDirs({ home, dirs: [...many, path.join(home, 'x'.repeat(300))] }).catch(
    (error: unknown) => error
  )
  const isMade = async (): Promise<boolean> => (await fs.stat(path.join(home, '0')).catch(() => null)) !== null
  while (!(await isMade()));
  await fs.writeFile(path.join(home, '0', 'data'), 'of another start')
  t.is(((await making) as { code: string }).code, 'PATH_TOO_LONG')
  t.alike(await fs.readdir(home), ['0'])
  t.is(await fs.readFile(path.join(home, '0', 'data'), 'utf8'), 'of another start')
})

test('an existing home that may not be written is NO_PERMISSION', async (t) => {
  const dir = await tempDir(t)
  await fs.chmod(dir, 0o755)
  const home = path.join(dir, 'home')
  await makeDataDirs({ home, dirs: [] })
  await fs.chmod(home, 0o555)
  const code = asNobody(`
    const { makeDataDirs } = await load('adapters/storage/home/data-dir.js');
    /* become */
    try { await makeDataDirs({ home: '${home}', dirs: [] }); console.log('made') } catch (error) { console.log(error.code) }
  `)
  t.is(code, 'NO_PERMISSION')
})

test('a name too long for the system is PATH_TOO_LONG, and directories made before it are removed', async (t) => {
  const home = path.join(await tempDir(t), 'home')
  const error = await failsWith(t, 'PATH_TOO_LONG', () =>
    makeDataDirs({ home, dirs: [path.join(home, 'x'.repeat(300))] })
  )
  t.ok(error.next.length > 0)
  await t.exception(fs.stat(home), /ENOENT/)
})

test('a file in the way is CONFIG_INVALID and stays as it is', async (t) => {
  const home = path.join(await tempDir(t), 'home')
  await fs.writeFile(home, 'a file')
  await failsWith(t, 'CONFIG_INVALID', () => makeDataDirs(dirsOf(home)))
  await failsWith(t, 'CONFIG_INVALID', () => makeDataDirs(dirsOf(path.join(home, 'below'))))
  t.is(await fs.readFile(home, 'utf8'), 'a file')
})

test('earlier files stay when a directory below them cannot be made', async (t) => {
  const home = await tempDir(t)
  await fs.writeFile(path.join(home, 'config.yaml'), 'kept')
  await failsWith(t, 'PATH_TOO_LONG', () =>
    makeDataDirs({ home, dirs: [path.join(home, 'run'), path.join(home, 'x'.repeat(300))] })
  )
  t.alike(await fs.readdir(home), ['config.yaml'])
})

test('a home that others may read keeps its mode, one that is empty and open to writers is closed', async (t) => {
  const readable = path.join(await tempDir(t), 'readable')
  await fs.mkdir(readable)
  await fs.chmod(readable, 0o755)
  await makeDataDirs(dirsOf(readable))
  t.is(await modeOf(readable), '755')
  const open = path.join(await tempDir(t), 'open')
  await fs.mkdir(open)
  await fs.chmod(open, 0o777)
  await makeDataDirs(dirsOf(open))
  t.is(await modeOf(open), '700')
})

test('a shared directory with other things in it is refused and left as it was', async (t) => {
  const shared = path.join(await tempDir(t), 'shared')
  await fs.mkdir(shared)
  await fs.writeFile(path.join(shared, 'somebody'), 'else')
  await fs.chmod(shared, 0o1777)
  const error = await failsWith(t, 'NO_PERMISSION', () => makeDataDirs(dirsOf(shared)))
  t.ok(error.next[0]?.startsWith('chmod 700'))
  t.is(await modeOf(shared), '1777')
  t.alike(await fs.readdir(shared), ['somebody'])
})

test('a place that takes no directories is NO_PERMISSION at once, and never a loop', {
  skip: process.platform !== 'linux'
}, async (t) => {
  const home = '/proc/a2a-node-test/deep/home'
  const error = await failsWith(t, 'NO_PERMISSION', () => makeDataDirs(dirsOf(home)))
  t.ok(error.next.some((one) => one.includes('--home')))
})

test('every level that was made goes again when a deeper one cannot be made', async (t) => {
  const dir = await tempDir(t)
  await failsWith(t, 'PATH_TOO_LONG', () => makeDataDirs({ home: path.join(dir, 'a', 'b', 'x'.repeat(300)), dirs: [] }))
  t.alike(await fs.readdir(dir), [])
})
