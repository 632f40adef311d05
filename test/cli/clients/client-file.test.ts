import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { CLIENT_FILE_MAX_BYTES, readClientFile, writeClientFile } from '../../../src/cli/clients/client-file.js'
import { asNobody } from '../../support/as-nobody.js'
import { failsWith } from '../../support/fails.js'
import { smallDisk } from '../../support/small-disk.js'
import { tempDir } from '../../support/tmp.js'

const NOW = Date.parse('2026-01-02T03:04:05.678Z')
const BACKUP = '20260102T030405.678Z.bak'

test('a file is replaced as a whole, with its mode, byte order mark and a copy of the earlier file', async (t: Assert) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'mcp.json')
  await fs.writeFile(file, '\ufeff{}\r\n')
  await fs.chmod(file, 0o640)
  const before = await readClientFile(file)
  t.is(before.text, '{}\r\n')
  const backup = await writeClientFile(before, '{ }\r\n', { now: NOW })
  t.is(backup, `${file}.${BACKUP}`)
  t.is(await fs.readFile(file, 'utf8'), '\ufeff{ }\r\n')
  t.is(await fs.readFile(backup ?? '', 'utf8'), '\ufeff{}\r\n')
  for (const one of [file, backup ?? '']) t.is((await fs.stat(one)).mode & 0o777, 0o640, one)
  t.alike((await fs.readdir(dir)).sort(), ['mcp.json', `mcp.json.${BACKUP}`])
})

test('a file keeps its owner', async (t: Assert) => {
  if (process.getuid?.() !== 0) return t.comment('only the superuser may give files away')
  const file = path.join(await tempDir(t), 'mcp.json')
  await fs.writeFile(file, '{}')
  await fs.chown(file, 12_345, 23_456)
  const backup = await writeClientFile(await readClientFile(file), '{ }', { now: NOW })
  for (const one of [file, backup ?? '']) {
    const { uid, gid } = await fs.stat(one)
    t.alike([uid, gid], [12_345, 23_456], one)
  }
})

test('a link stays a link, and its target is replaced', async (t: Assert) => {
  const dir = await tempDir(t)
  await fs.mkdir(path.join(dir, 'dotfiles'))
  const [file, target] = [path.join(dir, 'mcp.json'), path.join(dir, 'dotfiles', 'cursor.json')]
  await fs.writeFile(target, '{}')
  await fs.symlink(path.join('dotfiles', 'cursor.json'), file)
  const backup = await writeClientFile(await readClientFile(file), '{ }', { now: NOW })
  t.is(await fs.readlink(file), path.join('dotfiles', 'cursor.json'))
  t.is(await fs.readFile(target, 'utf8'), '{ }')
  t.is(backup, `${file}.${BACKUP}`)
  t.alike(await fs.readdir(path.dirname(target)), ['cursor.json'])
})

test('a file that is not there is made for its owner only, and there is nothing to keep', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'mcp.json')
  const before = await readClientFile(file)
  t.is(before.text, null)
  t.is(await writeClientFile(before, '{}', { now: NOW }), null)
  t.is(await fs.readFile(file, 'utf8'), '{}')
  t.is((await fs.stat(file)).mode & 0o777, 0o600)
})

test('a file that another program changed, made or took away meanwhile is left to it', async (t: Assert) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'mcp.json')
  const missing = await readClientFile(file)
  await fs.writeFile(file, '{"a": 1}')
  await failsWith(t, 'CONFLICT', () => writeClientFile(missing, '{}', { now: NOW }))
  const before = await readClientFile(file)
  await fs.writeFile(file, '{"a": 2}')
  await failsWith(t, 'CONFLICT', () => writeClientFile(before, '{}', { now: NOW }))
  t.is(await fs.readFile(file, 'utf8'), '{"a": 2}')
  t.alike(await fs.readdir(dir), ['mcp.json'], 'nothing else is left')
  const last = await readClientFile(file)
  await fs.rm(file)
  await failsWith(t, 'CONFLICT', () => writeClientFile(last, '{}', { now: NOW }))
  t.alike(await fs.readdir(dir), [])
})

test('a directory, a large file, a file that is not UTF-8 and a broken link are refused', async (t: Assert) => {
  const dir = await tempDir(t)
  const at = (name: string): string => path.join(dir, name)
  await fs.mkdir(at('dir'))
  await fs.writeFile(at('large'), '')
  await fs.truncate(at('large'), CLIENT_FILE_MAX_BYTES + 1)
  await fs.writeFile(at('utf16'), Buffer.from('\ufeff{}', 'utf16le'))
  await fs.symlink('nowhere', at('link'))
  await fs.symlink('loop', at('loop'))
  spawnSync('mkfifo', [at('pipe')])
  for (const name of ['dir', 'large', 'utf16', 'link', 'loop', 'pipe', 'utf16/below']) {
    const error = await failsWith(t, 'CONFIG_INVALID', () => readClientFile(at(name)))
    t.ok(error.message.includes(at(name)), error.message)
  }
})

test('without permission nothing is read or written, and the error says so', async (t: Assert) => {
  const dir = await tempDir(t)
  await fs.chmod(dir, 0o755)
  await fs.writeFile(path.join(dir, 'secret.json'), '{}', { mode: 0o000 })
  await fs.mkdir(path.join(dir, 'shut'))
  await fs.writeFile(path.join(dir, 'shut', 'mcp.json'), '{}', { mode: 0o644 })
  await fs.chmod(path.join(dir, 'shut'), 0o555)
  t.teardown(() => fs.chmod(path.join(dir, 'shut'), 0o755))
  const printed = asNobody(`
    const { readClientFile, writeClientFile } = await load('cli/clients/client-file.js')
    // Before: directories above may be the superuser's alone.
    const read = await readClientFile(${JSON.stringify(path.join(dir, 'shut', 'mcp.json'))})
    /* become */
    const codes = []
    await readClientFile(${JSON.stringify(path.join(dir, 'secret.json'))}).catch((error) => codes.push(error.code))
    await writeClientFile(read, '{ }', { now: ${NOW} }).catch((error) => codes.push(error.code))
    console.log(codes.join())
  `)
  t.is(printed, 'NO_PERMISSION,NO_PERMISSION')
  t.alike(await fs.readdir(path.join(dir, 'shut')), ['mcp.json'])
  t.is(await fs.readFile(path.join(dir, 'shut', 'mcp.json'), 'utf8'), '{}')
})

test('on a full disk the file stays as it was', async (t: Assert) => {
  const disk = await smallDisk(t, 1)
  if (typeof disk === 'string') return t.comment(disk)
  const file = path.join(disk.dir, 'mcp.json')
  await fs.writeFile(file, '{}')
  const before = await readClientFile(file)
  await disk.fill()
  await failsWith(t, 'DISK_FULL', () => writeClientFile(before, `{ "a": "${'x'.repeat(100_000)}" }`, { now: NOW }))
  t.is(await fs.readFile(file, 'utf8'), '{}')
  t.alike(
    (await fs.readdir(disk.dir)).filter((name) => name.startsWith('.') || name.endsWith('.bak')),
    []
  )
})
