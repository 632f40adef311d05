import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { installedServices, removeStep } from '../../../src/cli/service/installed.js'
import { homeOfUnit, launchdPlist, type ServiceSpec, systemdUnit } from '../../../src/cli/service/units.js'
import { holds } from '../../support/holds.js'
import { tempDir } from '../../support/tmp.js'
import { run } from '../command-line.js'

function specOf(home: string | null, account: string | null = null): ServiceSpec {
  return { name: 'a2a-node', program: '/bin/a2a-node.js', home, path: '/bin', logFile: '/log', account }
}

test('a file of a service gives its home back, with any characters', async (t) => {
  const arbHome = fc.string({ unit: 'grapheme', minLength: 1 }).filter((one) => !/\p{Cc}/u.test(one))
  await holds(
    t,
    fc.property(fc.oneof(arbHome, fc.constantFrom('/a "b" \\c %h $HOME', '<&>')), fc.boolean(), (home, isSystem) => {
      const spec = specOf(home, isSystem ? 'me' : null)
      return homeOfUnit(systemdUnit(spec)) === home && homeOfUnit(launchdPlist(spec)) === home
    })
  )
  t.alike([systemdUnit(specOf(null)), launchdPlist(specOf(null))].map(homeOfUnit), [null, null])
})

test('services of the user and of the machine are found with the commands that remove them, and files of others are not', async (t) => {
  const dir = await tempDir(t)
  const dirs = { user: path.join(dir, 'user'), system: path.join(dir, 'system') }
  t.alike(await installedServices(dirs), [], 'the directories are missing')
  for (const one of Object.values(dirs)) await fs.mkdir(one)
  const write = (file: string, text: string): Promise<void> => fs.writeFile(path.join(dir, file), text)
  await write('user/a2a-node.service', systemdUnit(specOf(null)))
  await write('user/a2a-node-1.plist', launchdPlist(specOf('/my home')))
  await write('user/a2a-node-2.service', '[Unit]\nDescription=of another program\n')
  await write('user/other.service', systemdUnit(specOf('/x')))
  await write('system/a2a-node-3.service', systemdUnit(specOf('/srv/node', 'node')))
  await fs.symlink('/nowhere', path.join(dirs.system, 'a2a-node-4.service'))
  t.alike(
    (await installedServices(dirs)).map((one) => [path.relative(dir, one.file), removeStep(one)]),
    [
      ['user/a2a-node-1.plist', "a2a-node --home '/my home' service uninstall"],
      ['user/a2a-node.service', 'a2a-node service uninstall'],
      ['system/a2a-node-3.service', 'sudo a2a-node --home /srv/node service uninstall --system']
    ]
  )
})

test('uninstall names services of other homes, with the command that removes each, and leaves them', async (t) => {
  const HOME = await tempDir(t)
  const units = path.join(HOME, '.config', 'systemd', 'user')
  const [file, other] = [path.join(units, 'a2a-node-12345678.service'), path.join(HOME, 'other')]
  await fs.mkdir(units, { recursive: true })
  await fs.writeFile(file, systemdUnit(specOf(other)))
  const at = { home: path.join(HOME, 'node'), env: { HOME, XDG_CONFIG_HOME: path.join(HOME, '.config') } }
  const { code, stdout } = await run(['uninstall', '--yes'], at)
  t.is(code, 0)
  t.ok(stdout.includes(`Another service stays: ${file}\n  try: a2a-node --home ${other} service uninstall\n`), stdout)
  const { others } = JSON.parse((await run(['uninstall', '--yes', '--json'], at)).stdout) as { others: unknown[] }
  t.alike(others, [{ file, isSystem: false, home: other }])
  t.ok(await fs.stat(file))
})
