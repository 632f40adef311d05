import fs from 'node:fs/promises'
import net from 'node:net'
import dgram from 'node:dgram'
import path from 'node:path'
import { NodeError, STOP_AND_REPAIR } from '../kit/errors.js'
import { shortId } from '../kit/ids.js'
import { skewText } from '../domain/membership/clock-skew.js'
import type { HomePaths } from '../config/paths.js'
import type { Config } from '../config/settings.js'
import type { ReachInfo } from '../ports/network/reach.js'
import type { StatusInfo } from '../ports/node-api.js'
import { connectControl } from '../adapters/control/client.js'
import { checkAgentDirectory } from '../adapters/agents/files/check-file.js'
import { LOW_BYTES } from '../adapters/storage/home/disk-space.js'
import { recordedSkew } from '../adapters/storage/home/skew-record.js'
import { sandboxOfHome } from '../compose/home-sandbox.js'
import type { MeshState } from '../adapters/mesh/network/mesh-node.js'
import { readIfThere } from '../adapters/storage/home/atomic-file.js'
import { brokenText, verifyAudit } from '../adapters/storage/audit/audit-verify.js'
import { type DamagedFile, damagedDocuments, openNodeStore } from '../adapters/storage/home/node-store.js'
import { storeError } from '../adapters/storage/home/store-errors.js'
import { readPolicy } from '../adapters/storage/policy/policy-text.js'
import { bad, type DoctorCheck, doubtful, good } from './doctor-check.js'
import { diagnoseStores, type HomeUse, useHome } from './doctor-stores.js'
import { isReplaceable, isThere } from './doctor-documents.js'
import { Unwind } from '../compose/unwind.js'

/** Free bytes of the disk below which a node may not go on one day. */
const DOUBTFUL_BYTES = 256 * 1024 * 1024
/** The clock may be this far behind what this node has seen, in milliseconds. */
const BEHIND_MS = 300_000

/** A node that runs has this long to say what is wrong, in milliseconds. */
const STATUS_MS = 5000

/** Inputs of a check of a home. */
export interface DoctorOptions {
  readonly home: HomePaths
  /** The settings, or why there are none. */
  readonly config: Config | NodeError
  readonly now: number
}

/** Checks a home. It changes only what a start would change; no node starts in the home meanwhile. Never rejects. */
export async function diagnoseHome(options: DoctorOptions): Promise<readonly DoctorCheck[]> {
  const { home } = options
  if (!(await isThere(home.home))) return [doubtful('home', `there is no node in ${home.home}`, ['a2a-node start'])]
  const unwind = new Unwind(() => {})
  try {
    return await diagnoseUsed(options, await useHome(home, unwind))
  } finally {
    await unwind.run()
  }
}

async function diagnoseUsed(options: DoctorOptions, use: HomeUse): Promise<readonly DoctorCheck[]> {
  const { home, config } = options
  const checks: DoctorCheck[] = []
  let status: StatusInfo | null = null
  const looks: readonly (() => Promise<DoctorCheck | readonly DoctorCheck[]>)[] = [
    () => homeCheck(home),
    () => Promise.resolve(processCheck(use)),
    () => socketCheck(home, use),
    async () => runningChecks((status = await statusOf(home, use))),
    () => Promise.resolve(configCheck(config)),
    () => policyCheck(home),
    () => agentsCheck(home),
    () => documentChecks(home),
    () => diagnoseStores(home, use),
    () => auditCheck(home),
    () => diskCheck(home),
    () => clockCheck(options),
    () => networkCheck(config, { use, reach: status?.reach ?? null })
  ]
  for (const look of looks)
    checks.push(...[await look().catch((error: unknown) => unexpected(error, home.home))].flat())
  return checks
}

function unexpected(error: unknown, home: string): DoctorCheck {
  const { message, next } = storeError(error, (error as NodeJS.ErrnoException).path ?? home)
  return bad('doctor', `a check could not be made: ${message}`, next)
}

async function homeCheck({ home, run, store }: HomePaths): Promise<DoctorCheck> {
  for (const dir of [home, run, store]) {
    const stats = await fs.stat(dir).catch(() => null)
    if (stats === null) continue
    if (!stats.isDirectory()) return bad('home', `${dir} is not a directory`, ['a2a-node start --home <directory>'])
    if (stats.uid !== process.getuid?.()) return bad('home', `${dir} belongs to another user`, [`ls -ld ${dir}`])
    if ((stats.mode & 0o022) !== 0) return bad('home', `others may write in ${dir}`, [`chmod 700 ${dir}`])
    if ((stats.mode & 0o700) !== 0o700) return bad('home', `its user may not use ${dir}`, [`chmod 700 ${dir}`])
    if ((stats.mode & 0o055) !== 0) return doubtful('home', `others may read ${dir}`, [`chmod 700 ${dir}`])
  }
  return good('home', home)
}

function processCheck(use: HomeUse): DoctorCheck {
  if (use.by !== 'another process') return good('process', 'no node runs here')
  return good('process', use.pid === null ? 'another process uses this home' : `a node runs (pid ${use.pid})`)
}

async function socketCheck({ socket }: HomePaths, use: HomeUse): Promise<DoctorCheck> {
  const isServed = await new Promise<boolean>((resolve) => {
    const connection = net.connect(socket, () => resolve(true))
    connection.on('error', () => resolve(false))
    connection.setTimeout(2000, () => resolve(false))
    connection.once('close', () => connection.destroy())
    connection.once('connect', () => connection.end())
  })
  if (isServed) return good('socket', socket)
  if (use.by === 'another process') return silentCheck(socket, use.pid)
  return good('socket', (await isThere(socket)) ? 'left by a node that was killed; the next start takes it' : 'free')
}

function silentCheck(socket: string, pid: number | null): DoctorCheck {
  if (pid === null)
    return bad('socket', `the process that uses this home does not answer at ${socket}`, ['a2a-node status'])
  return bad('socket', `the node (pid ${pid}) does not answer at ${socket}`, [`kill -9 ${pid}`, 'a2a-node start'])
}

/** `status` of the running node; null when none answers, which is a fault of the socket. */
async function statusOf({ socket }: HomePaths, use: HomeUse): Promise<StatusInfo | null> {
  if (use.by !== 'another process') return null
  return await connectControl(socket)
    .call('node.status', {}, { signal: AbortSignal.timeout(STATUS_MS) })
    .catch(() => null)
}

/** The problems that the running node reports: a peer in quarantine, requests without an owner, a full disk. */
function runningChecks(status: StatusInfo | null): readonly DoctorCheck[] {
  if (status === null) return []
  if (status.problems.length === 0) return [good('node', 'reports no problem')]
  return status.problems.map(({ code, message, next }) => {
    const tell = next === STOP_AND_REPAIR ? bad : doubtful
    return tell('node', `${code}: ${message}`, [next])
  })
}

function configCheck(config: Config | NodeError): DoctorCheck {
  return config instanceof NodeError
    ? bad('config', config.message, config.next)
    : good('config', 'every setting can be used')
}

async function policyCheck({ policyFile, home }: HomePaths): Promise<DoctorCheck> {
  const text = await readIfThere(policyFile)
  if (text === null) {
    const isMissed = await isThere(path.join(home, 'policy.seen'))
    return isMissed ? bad('policy', `${policyFile} is gone; there was one`, ['a2a-node start']) : good('policy', 'none')
  }
  const reading = readPolicy(text)
  return reading.ok
    ? good('policy', policyFile)
    : bad('policy', `${policyFile} has faults`, [`less ${policyFile}`, 'a2a-node policy show'])
}

async function agentsCheck({ agents, home }: HomePaths): Promise<DoctorCheck> {
  if (!(await isThere(agents))) return good('agents', 'no files')
  const reports = await checkAgentDirectory(agents, await sandboxOfHome(home))
  const faulty = reports.filter((one) => !one.ok)
  const [first] = faulty
  if (first === undefined) return good('agents', `${reports.length} ${reports.length === 1 ? 'file' : 'files'}`)
  return doubtful('agents', `${faulty.length} of ${reports.length} files cannot be used`, [
    `a2a-node agents check ${first.file}`
  ])
}

async function documentChecks({ home }: HomePaths): Promise<readonly DoctorCheck[]> {
  const damaged = await damagedDocuments(home)
  if (damaged.length > 0) return damaged.map(documentCheck)
  return [
    good(
      'documents',
      `${(await fs.readdir(home)).filter((name) => name.endsWith('.json')).length} small files of the node, all whole`
    )
  ]
}

function documentCheck({ name, file, isMendable }: DamagedFile): DoctorCheck {
  if (isMendable)
    return doubtful('documents', `the file ${file} is damaged, and the other one of the two is whole`, [
      'a2a-node doctor --repair'
    ])
  const next = isReplaceable(name) ? ['a2a-node doctor --repair'] : ['a2a-node restore <backup> --home <new directory>']
  return bad('documents', `the file ${file} is damaged`, next)
}

async function auditCheck({ audit, auditSeen }: HomePaths): Promise<DoctorCheck> {
  const { ok, entries, broken } = await verifyAudit(audit, { seen: auditSeen })
  const [first] = broken
  if (ok || first === undefined) return good('audit', `${entries} lines hold`)
  return bad('audit', brokenText(first), ['a2a-node audit --verify'])
}

async function diskCheck({ home }: HomePaths): Promise<DoctorCheck> {
  const { bavail, bsize } = await fs.statfs(home)
  const free = bavail * bsize
  const text = `${Math.floor(free / 1024 ** 2)} MiB free`
  if (free < LOW_BYTES) return bad('disk', text, [`df -h ${home}`])
  return free < DOUBTFUL_BYTES ? doubtful('disk', text, [`df -h ${home}`]) : good('disk', text)
}

/** Signed times and files of this node itself say when it was at least. */
async function clockCheck({ home, now }: DoctorOptions): Promise<DoctorCheck> {
  const mesh = await openNodeStore(home.home)
    .read<MeshState>('mesh')
    .catch(() => null)
  const issued = mesh?.chain.map((one) => one.body.issuedAt) ?? []
  const files = await Promise.all(
    ['mesh.json', 'core.json'].map((name) => fs.stat(path.join(home.home, name)).catch(() => null))
  )
  const seen = Math.max(0, ...issued, ...files.map((one) => one?.mtimeMs ?? 0))
  const skew = await recordedSkew(openNodeStore(home.home), now)
  const compared =
    skew === null
      ? null
      : `it is ${skewText(skew, `the node ${shortId(skew.peer)}`)}, as measured last: set the wrong one`
  if (now >= seen - BEHIND_MS)
    return compared === null ? good('clock', new Date(now).toISOString()) : doubtful('clock', compared, ['date'])
  const state = `it says ${new Date(now).toISOString()}, and this node was at work at ${new Date(seen).toISOString()}`
  return bad('clock', compared === null ? state : `${state}; ${compared}`, ['date'])
}

/** `reach`: what a running node says of its network; null without one. */
async function networkCheck(
  config: Config | NodeError,
  { use, reach }: { readonly use: HomeUse; readonly reach: ReachInfo | null }
): Promise<DoctorCheck> {
  const free = await bindError(0, '0.0.0.0')
  if (free !== null) return bad('network', `no UDP socket: ${free}`, ['a2a-node config show'])
  const served = config instanceof NodeError ? null : config.network.serveBootstrap
  if (reach !== null && reach.dht !== null) return dhtCheck(reach, reach.dht)
  if (served === null || use.by === 'another process')
    return good('network', 'UDP sockets can be opened; whether the DHT answers, a running node shows')
  const place = /^(.*):(\d+)$/.exec(served)
  const fault = await bindError(Number(place?.[2] ?? 0), '0.0.0.0')
  return fault === null
    ? good('network', `${served} is free`)
    : bad('network', `${served}: ${fault}`, ['a2a-node config show'])
}

function dhtCheck({ nat, address }: ReachInfo, { state, since }: NonNullable<ReachInfo['dht']>): DoctorCheck {
  if (state === 'silent') return doubtful('network', `no node of the DHT answers since ${since}`, ['a2a-node status'])
  const seen = address === null ? '' : `; others see ${address}`
  return state === 'unknown'
    ? doubtful('network', 'the first answer of the DHT is awaited', ['a2a-node status'])
    : good('network', `the DHT answers since ${since}; NAT: ${nat.kind}${seen}`)
}

function bindReason(error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return 'another program uses the port'
  return error.code === 'EACCES' ? 'this user may not use the port' : error.message
}

function bindError(port: number, host: string): Promise<string | null> {
  const socket = dgram.createSocket('udp4')
  return new Promise((resolve) => {
    socket.once('error', (error) => {
      socket.close()
      resolve(bindReason(error))
    })
    socket.bind(port, host, () => socket.close(() => resolve(null)))
  })
}
