import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { type ServiceHost, type ServicePlan, servicePlan } from '../../../src/cli/service/service-plan.js'
import { type CommandEnd, installService, serviceFile, uninstallService } from '../../../src/cli/service/service.js'
import type { ServiceSpec } from '../../../src/cli/service/units.js'
import { failsWith } from '../../support/fails.js'
import { tempDir } from '../../support/tmp.js'

const SPEC: ServiceSpec = {
  name: 'a2a-node',
  program: '/opt/a2a-node.js',
  home: null,
  path: '/usr/bin',
  logFile: '/tmp/node.log',
  account: null
}
const HOST: ServiceHost = {
  platform: 'linux',
  userHome: '/home/ann',
  configHome: '/home/ann/.config',
  uid: 1000,
  hasSystemd: true
}

/** A plan whose file is in a directory of the test, and a service manager that fails at one command. */
async function setUp(t: Assert, failing: string | null = null, code: number | null = 1) {
  const plan = servicePlan(SPEC, { ...HOST, configHome: await tempDir(t) })
  const ran: string[] = []
  const run = (command: readonly string[]): Promise<CommandEnd> => {
    const text = command.join(' ').replace(plan.file, 'FILE')
    ran.push(text)
    return Promise.resolve(
      failing !== null && text.startsWith(failing) ? { code, output: 'no bus' } : { code: 0, output: '' }
    )
  }
  return { plan, ran, run, isThere: async () => (await serviceFile(plan)) !== 'absent' }
}

const INSTALL = [
  'systemd-analyze --user verify FILE',
  'systemctl --user daemon-reload',
  'systemctl --user enable --now a2a-node.service',
  'loginctl enable-linger'
]

test('an installation writes one file, checks it, and runs the commands of its plan; a removal undoes both', async (t) => {
  const { plan, ran, run } = await setUp(t)
  t.is(await serviceFile(plan), 'absent')
  t.alike(await installService(plan, run), [])
  t.alike(ran.splice(0), INSTALL)
  t.is(await serviceFile(plan), 'same')
  t.is(await serviceFile({ ...plan, text: `${plan.text}\n` }), 'outdated')
  t.alike(await fs.readdir(path.dirname(plan.file)), ['a2a-node.service'])
  await uninstallService(plan, run)
  t.alike(ran, ['systemctl --user disable --now a2a-node.service', 'systemctl --user daemon-reload'])
  t.is(await serviceFile(plan), 'absent')
})

test('a failed check or command of an installation leaves no new file, and the former one where there was one', async (t) => {
  for (const failing of INSTALL.slice(0, 3)) {
    const { plan, ran, run, isThere } = await setUp(t, failing)
    await failsWith(t, 'CONFLICT', () => installService(plan, run))
    t.is(ran.at(-1), failing, 'nothing runs after it')
    t.absent(await isThere())
    const former = plan.text.replace('RestartSec=5', 'RestartSec=9')
    await fs.writeFile(plan.file, former)
    await failsWith(t, 'CONFLICT', () => installService(plan, run))
    t.is(await fs.readFile(plan.file, 'utf8'), former)
  }
})

test('a machine without the checker installs all the same, and one that keeps no user manager at boot gives a warning', async (t) => {
  const unchecked = await setUp(t, 'systemd-analyze', null)
  t.alike(await installService(unchecked.plan, unchecked.run), [])
  const lingerless = await setUp(t, 'loginctl')
  t.alike(await installService(lingerless.plan, lingerless.run), ['loginctl enable-linger failed: no bus'])
  t.ok(await lingerless.isThere())
  const missing = await setUp(t, 'systemctl', null)
  await failsWith(t, 'CONFLICT', () => installService(missing.plan, missing.run))
})

test('the file of another program is foreign, and a failed stop keeps the file of the service', async (t) => {
  const { plan, run } = await setUp(t, 'systemctl --user disable')
  await fs.mkdir(path.dirname(plan.file), { recursive: true })
  await fs.writeFile(plan.file, '[Unit]\nDescription=mine\n')
  t.is(await serviceFile(plan), 'foreign')
  await fs.writeFile(plan.file, plan.text)
  await failsWith(t, 'CONFLICT', () => uninstallService(plan, run))
  t.is(await serviceFile(plan), 'same')
})

test('each manager has its place: systemd and launchd, of a user and of the machine', (t) => {
  const mac = { ...HOST, platform: 'darwin', userHome: '/Users/ann' } as const
  const places = ([host, account]: readonly [ServiceHost, string | null]): ServicePlan =>
    servicePlan({ ...SPEC, account }, host)
  t.alike(
    (
      [
        [HOST, null],
        [HOST, 'ann'],
        [mac, null],
        [mac, 'ann']
      ] as const
    ).map((one) => places(one).file),
    [
      '/home/ann/.config/systemd/user/a2a-node.service',
      '/etc/systemd/system/a2a-node.service',
      '/Users/ann/Library/LaunchAgents/a2a-node.plist',
      '/Library/LaunchDaemons/a2a-node.plist'
    ]
  )
  t.alike(places([mac, null]).install, [
    ['launchctl', 'bootstrap', 'gui/1000', '/Users/ann/Library/LaunchAgents/a2a-node.plist']
  ])
  t.alike(places([mac, 'ann']).uninstall, [['launchctl', 'bootout', 'system/a2a-node']])
  t.alike(places([HOST, 'ann']).install.at(-1), ['systemctl', 'enable', '--now', 'a2a-node.service'])
  t.alike(places([HOST, 'ann']).optional, [])
})

test('a machine without a known manager, and a path with a line break, are refused with the cause', async (t) => {
  const refused: readonly [Partial<ServiceHost>, Partial<ServiceSpec>, 'CONFLICT' | 'USAGE'][] = [
    [{ hasSystemd: false }, {}, 'CONFLICT'],
    [{ platform: 'win32' }, {}, 'CONFLICT'],
    [{ platform: 'freebsd', hasSystemd: true }, {}, 'CONFLICT'],
    [{}, { home: '/a\nExecStartPre=/bin/sh' }, 'USAGE'],
    [{}, { path: '/bin:/a\rb' }, 'USAGE'],
    [{}, { program: '/opt/$HOME/a2a-node.js' }, 'USAGE'],
    [{}, { logFile: '/a\nb/node.log' }, 'USAGE']
  ]
  for (const [host, spec, code] of refused)
    await failsWith(t, code, () =>
      Promise.resolve().then(() => servicePlan({ ...SPEC, ...spec }, { ...HOST, ...host }))
    )
})
