import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import test, { type Assert } from 'brittle'
import { runCommand } from '../../../src/cli/service/service.js'
import { isOurUnit, launchdPlist, type ServiceSpec, systemdUnit } from '../../../src/cli/service/units.js'
import { tempDir } from '../../support/tmp.js'

const SPEC: ServiceSpec = {
  name: 'a2a-node',
  program: '/opt/a2a-node/bin/a2a-node.js',
  home: null,
  path: '/usr/bin:/bin',
  logFile: '/home/ann/.local/share/a2a-node/default/node.log',
  account: null
}

/** Values of a key in a unit. */
function values(unit: string, key: string): string[] {
  return unit.split('\n').flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []))
}

test('a unit starts the node after boot and after a crash, and no more after a stop, a fault of its home or a revocation', (t) => {
  const unit = systemdUnit(SPEC)
  t.alike(values(unit, 'WantedBy'), ['default.target'])
  t.alike(values(unit, 'Restart'), ['on-failure'])
  t.alike(values(unit, 'RestartPreventExitStatus'), ['2 5 78'])
  t.alike(values(unit, 'SuccessExitStatus'), ['130 143'])
  t.alike(values(unit, 'ExecStart'), ['"/opt/a2a-node/bin/a2a-node.js" "start" "--report-ready"'])
  t.alike(values(unit, 'StandardOutput'), [`append:${SPEC.logFile}`])
  t.alike(values(unit, 'NoNewPrivileges'), ['yes'])
  t.alike(values(unit, 'User'), [])
  t.ok(isOurUnit(unit))
})

test('a unit of the machine runs under an account without capabilities, and only it has protections of the system', (t) => {
  const unit = systemdUnit({ ...SPEC, account: 'ann', home: '/srv/node' })
  t.alike(values(unit, 'User'), ['ann'])
  t.alike(values(unit, 'WantedBy'), ['multi-user.target'])
  t.alike(values(unit, 'CapabilityBoundingSet'), [''])
  t.alike(values(unit, 'ProtectSystem'), ['full'])
  t.ok(values(unit, 'ExecStart')[0]?.endsWith('"--home" "/srv/node"'))
  t.alike(values(systemdUnit(SPEC), 'ProtectSystem'), [])
})

/** Paths of a program and a home in a directory with a name. */
async function specIn(t: Assert, name: string): Promise<ServiceSpec> {
  const dir = path.join(await tempDir(t), name)
  await fs.mkdir(dir)
  const program = path.join(dir, 'a2a-node.js')
  await fs.writeFile(program, '#!/bin/sh\n', { mode: 0o755 })
  return { ...SPEC, program, home: dir, logFile: path.join(dir, 'node.log'), path: `${dir}:/usr/bin` }
}

/** The words of a command line of systemd, of which each has quotes. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) =>
    word.replaceAll(/\\(.)/g, '$1').replaceAll('$$', '$').replaceAll('%%', '%')
  )
}

test('the account of a service of the machine opens its log, not root: output and errors are in it, for any path', async (t) => {
  const spec = { ...(await specIn(t, 'a "b" \\ \'c\' $HOME `d` %h')), account: 'ann' }
  await fs.writeFile(spec.program, '#!/bin/sh\necho "$*"\necho fault >&2\n', { mode: 0o755 })
  await fs.writeFile(spec.logFile, 'former\n')
  const unit = systemdUnit(spec)
  t.alike([...values(unit, 'StandardOutput'), ...values(unit, 'StandardError')], [])
  const { code, output } = await runCommand(wordsOf(values(unit, 'ExecStart')[0] ?? ''))
  t.alike([code, output], [0, ''])
  t.is(await fs.readFile(spec.logFile, 'utf8'), `former\nstart --report-ready --home ${spec.home}\nfault\n`)
})

test('systemd accepts units of users and of the machine, also with signs of its syntax in the paths', async (t) => {
  const version = await runCommand(['systemd-analyze', '--version'])
  if (version.code !== 0) return t.comment('systemd-analyze is missing')
  for (const name of ['plain', 'with a space', 'a%h;b'])
    for (const account of [null, 'root']) {
      const home = '/srv/quote"and\\back $PATH %h'
      const spec = { ...(await specIn(t, name)), account, home, path: `/usr/bin:${home}` }
      const file = path.join(await tempDir(t), 'a2a-node.service')
      await fs.writeFile(file, systemdUnit(spec))
      const runtime = `XDG_RUNTIME_DIR=${await tempDir(t)}`
      const words = ['env', runtime, 'systemd-analyze', ...(account === null ? ['--user'] : []), 'verify', file]
      const { code, output } = await runCommand(words)
      t.alike([code, output], [0, ''], `${name} ${account}`)
    }
  const broken = path.join(await tempDir(t), 'a2a-node.service')
  await fs.writeFile(broken, systemdUnit(SPEC).replace('Restart=on-failure', 'Restart=sometimes'))
  const { output } = await runCommand(['systemd-analyze', 'verify', broken])
  t.ok(/sometimes/.test(output), output)
})

test('a property list starts the node at boot and after a failure, with each text escaped', async (t) => {
  const plist = launchdPlist({ ...SPEC, home: '/Users/ann/<a> & "b"', account: 'ann' })
  t.ok(isOurUnit(plist))
  for (const part of [
    '<key>Label</key><string>a2a-node</string>',
    '<key>UserName</key><string>ann</string>',
    '<string>/Users/ann/&lt;a&gt; &amp; "b"</string>',
    '<key>RunAtLoad</key><true/>',
    '<dict><key>SuccessfulExit</key><false/></dict>'
  ])
    t.ok(plist.includes(part), part)
  t.absent(launchdPlist(SPEC).includes('UserName'))
  const python =
    'import plistlib,sys,json;print(json.dumps(plistlib.loads(sys.stdin.buffer.read())["ProgramArguments"]))'
  const child = promisify(execFile)('python3', ['-c', python])
  child.child.stdin?.end(plist)
  const read = await child.catch(() => null)
  if (read === null) return t.comment('python3 is missing')
  t.alike(JSON.parse(read.stdout), [SPEC.program, 'start', '--report-ready', '--home', '/Users/ann/<a> & "b"'])
})

test('a file of another program is not ours, also with the mark further down', (t) => {
  for (const text of ['', '[Unit]\n', `[Unit]\n[Service]\n${systemdUnit(SPEC)}`, '# Written by a2a-node\n'])
    t.absent(isOurUnit(text))
})
