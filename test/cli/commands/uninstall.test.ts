import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test from 'brittle'
import { tempDir } from '../../support/tmp.js'
import { run } from '../command-line.js'

test('uninstall lists and removes the entries of this program in clients, and leaves the home and entries of others', async (t) => {
  const HOME = await tempDir(t)
  const home = path.join(HOME, 'node')
  const env = { HOME, XDG_CONFIG_HOME: path.join(HOME, '.config') }
  const [cursor, gemini] = [path.join(HOME, '.cursor', 'mcp.json'), path.join(HOME, '.gemini', 'settings.json')]
  const other = '{ "mcpServers": { "a2a-node": { "command": "other" }, "mine": { "command": "x" } } }\n'
  for (const file of [cursor, gemini]) await fs.mkdir(path.dirname(file))
  await fs.writeFile(gemini, other)
  await fs.writeFile(cursor, '{ "mcpServers": { "mine": { "command": "x" } } }\n')
  await fs.mkdir(home)
  await fs.writeFile(path.join(home, 'notes.txt'), 'mine')
  t.is((await run(['connect', 'cursor', '--yes'], { home, env })).code, 0)
  const connected = await fs.readFile(cursor, 'utf8')
  t.ok(connected.includes('a2a-node'))

  const listed = await run(['uninstall', '--dry-run'], { home, env })
  t.is(listed.code, 0, listed.stderr)
  t.ok(listed.stdout.startsWith(`removes a2a-node from ${cursor} (Cursor)\n`), listed.stdout)
  t.absent(listed.stdout.includes(gemini))
  t.is((await run(['uninstall'], { home, env })).code, 2, 'without a terminal --yes is needed')
  t.is(await fs.readFile(cursor, 'utf8'), connected)

  const removed = await run(['uninstall', '--yes', '--json'], { home, env })
  t.is(removed.code, 0, removed.stderr)
  t.alike((JSON.parse(removed.stdout) as { files: string[] }).files, [cursor])
  t.alike(JSON.parse(await fs.readFile(cursor, 'utf8')), { mcpServers: { mine: { command: 'x' } } })
  t.is(await fs.readFile(gemini, 'utf8'), other)
  t.alike(await fs.readdir(home), ['notes.txt'])
  const again = await run(['uninstall', '--yes'], { home, env })
  t.ok(again.stdout.startsWith('nothing outside the home\n'), again.stdout)
})

test('uninstall removes the entries in clients also where no service can be planned, and then fails with the reason', async (t) => {
  const HOME = await tempDir(t)
  const cursor = path.join(HOME, '.cursor', 'mcp.json')
  await fs.mkdir(path.dirname(cursor))
  const PATH = process.env['PATH'] ?? ''
  const cases = [
    [{ PATH: `${PATH}:/a\nb` }, 'node', 1],
    [{}, 'no\nde', 1],
    [{}, 'node', 0]
  ] as const
  // As in a container whose user has no account.
  const { userInfo } = os
  t.teardown(() => (os.userInfo = userInfo))
  os.userInfo = () => {
    throw new Error('uv_os_get_passwd returned ENOENT')
  }
  for (const [values, name, faults] of cases) {
    const env = { HOME, XDG_CONFIG_HOME: path.join(HOME, '.config'), ...values }
    const at = { home: path.join(HOME, name), env }
    t.is((await run(['connect', 'cursor', '--yes'], at)).code, 0)
    const { code, stdout, stderr } = await run(['uninstall', '--yes', '--json'], at)
    t.is(code, faults, stderr)
    const { files, unread } = JSON.parse(stdout) as { files: string[]; unread: string[] }
    t.alike([files, unread.length], [[cursor], faults])
    await t.exception(fs.stat(cursor), 'the file was made for the entry')
  }
})
