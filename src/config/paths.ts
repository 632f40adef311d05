import { createHash } from 'node:crypto'
import { existsSync, lstatSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { NodeError } from '../kit/errors.js'

/** Longest path of a unix socket in bytes: longer ones are silently cut by the system. */
export const SOCKET_PATH_MAX = 103

/** Where everything of one node lies. Absolute paths; nothing is created by asking for them. */
export interface HomePaths {
  /** The node's own directory, 0700. */
  readonly home: string
  /** The Corestore. */
  readonly store: string
  /** The Corestore of shared documents; made when there are any. */
  readonly documents: string
  /** Run-time state: records of agent processes, usually the control socket. 0700. */
  readonly run: string
  readonly agents: string
  /** The YAML settings; need not exist. */
  readonly configFile: string
  /** The rules of this node, YAML; need not exist. */
  readonly policyFile: string
  /** The flags of the last start; need not exist. */
  readonly startFlags: string
  /** Where a detached node writes its output. */
  readonly logFile: string
  readonly audit: string
  /** The note outside of it that there is one. */
  readonly auditSeen: string
  readonly ledger: string
  /** The control API's unix socket, at most {@link SOCKET_PATH_MAX} bytes. */
  readonly socket: string
  /** Was it set by `--home` or the environment? Then printed commands must name it. */
  readonly isChosen: boolean
}

/** Inputs of the paths. */
export interface PathSources {
  /** `--home`; wins over the environment. Relative ones belong to the current directory. */
  readonly home?: string | null | undefined
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Finds the directories of a node. With `--home` or `A2A_NODE_HOME` everything lies under that directory; without, data
 * is under XDG_DATA_HOME (`~/.local/share/a2a-node/default`), settings and agents under XDG_CONFIG_HOME
 * (`~/.config/a2a-node`).
 * @throws NodeError PATH_TOO_LONG when no place for the socket is short enough.
 */
export function resolveHome(sources: PathSources = {}): HomePaths {
  const env = sources.env ?? process.env
  const given = sources.home ?? env['A2A_NODE_HOME'] ?? ''
  const home =
    given === ''
      ? path.join(xdg(env, 'XDG_DATA_HOME', ['.local', 'share']), 'a2a-node', 'default')
      : path.resolve(given)
  const config = given === '' ? path.join(xdg(env, 'XDG_CONFIG_HOME', ['.config']), 'a2a-node') : home
  const run = path.join(home, 'run')
  return {
    home,
    store: path.join(home, 'store'),
    documents: path.join(home, 'documents'),
    run,
    agents: path.join(config, 'agents'),
    configFile: path.join(config, 'config.yaml'),
    policyFile: path.join(config, 'policy.yaml'),
    startFlags: path.join(home, 'start.flags'),
    logFile: path.join(home, 'node.log'),
    audit: path.join(home, 'audit'),
    auditSeen: path.join(home, 'audit.seen'),
    ledger: path.join(home, 'ledger'),
    socket: socketPath(run, env),
    isChosen: given !== ''
  }
}

function xdg(env: Readonly<Record<string, string | undefined>>, name: string, fallback: readonly string[]): string {
  const value = env[name]
  // The XDG specification says that relative values are ignored.
  if (value !== undefined && path.isAbsolute(value)) return value
  return path.join(userHome(env), ...fallback)
}

/** The home directory of the user: an absolute `HOME`, else that of the account. */
export function userHome(env: Readonly<Record<string, string | undefined>>): string {
  const home = env['HOME']
  return home !== undefined && path.isAbsolute(home) ? home : os.homedir()
}

function socketPath(run: string, env: Readonly<Record<string, string | undefined>>): string {
  const wanted = path.join(run, 'control.sock')
  if (fits(wanted)) return wanted
  const name = `${createHash('sha256').update(run).digest('hex').slice(0, 20)}.sock`
  const places = fallbackDirs(env)
    .map((dir) => path.join(dir, name))
    .filter(fits)
  // A node started under another environment may serve at a later path, so an existing one wins. Files of other users
  // are ignored.
  const own = places.filter((one) => isOwnOrFree(path.dirname(one)))
  const place = own.find((one) => existsSync(one)) ?? own[0] ?? places[0]
  if (place !== undefined) return place
  const bytes = Buffer.byteLength(wanted)
  throw new NodeError(
    'PATH_TOO_LONG',
    `the control socket ${wanted} would have ${bytes} bytes and no directory for sockets is short enough (at most ${SOCKET_PATH_MAX})`,
    {
      next: ['a2a-node start --home <shorter directory>', 'TMPDIR=/tmp a2a-node start']
    }
  )
}

/** The shared directory before the last one: everybody can take a name in it, which then is no place. */
function fallbackDirs(env: Readonly<Record<string, string | undefined>>): string[] {
  const runtime = env['XDG_RUNTIME_DIR']
  const temp = env['TMPDIR'] ?? os.tmpdir()
  const shared = path.join(path.isAbsolute(temp) ? temp : os.tmpdir(), `a2a-node-${process.getuid?.() ?? 0}`)
  const own = runtime !== undefined && path.isAbsolute(runtime) ? [path.join(runtime, 'a2a-node')] : []
  return [...own, shared, path.join(xdg(env, 'XDG_CACHE_HOME', ['.cache']), 'a2a-node', 'run')]
}

/** Can only this user have made what is at a place? True also where nothing is. */
function isOwnOrFree(dir: string): boolean {
  const uid = process.getuid?.()
  try {
    const stats = lstatSync(dir)
    return stats.isDirectory() && (uid === undefined || stats.uid === uid)
  } catch {
    return true
  }
}

function fits(file: string): boolean {
  return Buffer.byteLength(file) <= SOCKET_PATH_MAX
}
