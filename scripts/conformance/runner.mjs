// The official MCP conformance runner: which versions of it, what they run, and with which Node.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const NAME = '@modelcontextprotocol/conformance'
const MIN_NODE = 22
/** Names a Node that is new enough, where this one is not. */
const NODE_ENV = 'A2A_CONFORMANCE_NODE'

/** Version and arguments. The released one knows no requirements; the other is the first that knows MCP 2026-07-28. */
export const RUNS = [
  { version: '0.1.16', args: ['--suite', 'all'] },
  { version: '0.2.0-alpha.12', args: ['--requirements', '2025-11-25'] },
  { version: '0.2.0-alpha.12', args: ['--requirements', '2026-07-28'] },
  // What the requirements run without a verdict, since the runner's own server does not pass it.
  { version: '0.2.0-alpha.12', args: ['--suite', 'pending', '--spec-version', '2026-07-28'] }
]

/** The Node for the runner, or why there is none. `versionOf` asks a program for its version. */
export function nodeForRunner({ execPath, version, env }, versionOf = askVersion) {
  if (isEnough(version)) return { node: execPath }
  const named = env[NODE_ENV]
  if (named === undefined || named === '') {
    return {
      skipped: `the official runner needs Node ${MIN_NODE}, this is ${version}; ${NODE_ENV} may name the program of a newer one`
    }
  }
  const other = versionOf(named)
  if (!isEnough(other))
    throw new Error(`${NODE_ENV}: ${named} is ${other === '' ? 'no Node' : `Node ${other}`}, not ${MIN_NODE} or newer`)
  return { node: named }
}

/** Installs one version of the runner below a directory, without running anything of it. Returns its program. */
export function fetchRunner(version, root) {
  const dir = path.join(root, version)
  fs.mkdirSync(dir, { recursive: true })
  fs.writeFileSync(path.join(dir, 'package.json'), '{"private":true}\n')
  const args = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    '--engine-strict=false',
    `${NAME}@${version}`
  ]
  const { status } = spawnSync('npm', args, { cwd: dir, stdio: 'inherit', shell: process.platform === 'win32' })
  if (status !== 0) throw new Error(`npm could not install ${NAME}@${version}`)
  const home = path.join(dir, 'node_modules', NAME)
  return path.join(home, JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8')).bin.conformance)
}

function isEnough(version) {
  return Number.parseInt(version, 10) >= MIN_NODE
}

function askVersion(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return (stdout ?? '').trim().replace(/^v/, '')
}
