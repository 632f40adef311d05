import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { commitsBehind, journalFiles } from '../../src/adapters/storage/ledger/ledger-journal.js'
import { type RunningNode, type StartOptions } from '../../src/compose/compose.js'
import { ledgerMark } from '../../src/compose/open-home.js'
import { type Repair } from '../../src/maintenance/doctor-documents.js'
import { repairHome } from '../../src/maintenance/doctor-stores.js'
import { type DoctorCheck } from '../../src/maintenance/doctor-check.js'
import { diagnoseHome } from '../../src/maintenance/doctor.js'
import { openNodeStore } from '../../src/adapters/storage/home/node-store.js'
import { asNodeError } from '../../src/kit/errors.js'
import { DOCUMENT_MARKS, type StoredMarks } from '../../src/node/documents/marks.js'
import { apiOf, localNodes } from './local-nodes.js'
import { untilTrue } from './nodes.js'
import { tempDir } from './tmp.js'

/** How a file is damaged. */
export const WAYS = ['flipped', 'cut', 'zeroed'] as const
/** One of {@link WAYS}. */
export type Way = (typeof WAYS)[number]

/** What ties a store to its place: a copy of a home has none, and its first start makes one. */
const PLACE = /\/CORESTORE$/
/** What an engine writes first. */
const LOG = /\.log$|\/journal-/
/** A whole document must come back within so many milliseconds. */
const PATIENCE_MS = 30_000

type Ends = Pick<Assert, 'teardown'>

/** What a node tells of what its home holds. A call that is refused gives `refused <code>`. */
interface Facts {
  readonly id: string
  readonly mesh: string
  readonly text: unknown
  readonly tasks: unknown
  readonly tokens: unknown
  readonly members: unknown
}

/** The homes of two nodes, that of the first with all that a home can hold, and what it tells. */
export interface DamageScene {
  /** As the node left it when it stopped. */
  readonly stopped: string
  /** As it was while the node ran and had just written: like that of a node that was killed. */
  readonly killed: string
  readonly member: string
  readonly facts: Facts
  /**
   * Each file of the stopped home, and of the other one what only a killed node leaves: logs that are not in tables
   * yet.
   */
  readonly files: readonly DamagedPlace[]
}

/** A file of one of the homes, relative. */
export interface DamagedPlace {
  readonly of: 'stopped' | 'killed'
  readonly file: string
}

/** One damaged file. */
export interface DamageCase extends DamagedPlace {
  readonly way: Way
}

/** What came of it: `whole`, `reported` or `repaired`; or what must not be. */
export interface DamageResult extends DamageCase {
  readonly outcome: string
  readonly fault: string | null
}

/** A member and a node with a mesh, a ledger with a task, a document that both wrote, a token, an audit log. */
export async function damageScene(t: Ends): Promise<DamageScene> {
  const { start, homeOf } = await localNodes(t)
  const member = await start('member', { name: 'member' })
  const { code: join } = await apiOf(member).call('invite.create', { trust: 'mine' })
  const node = await start('node', { name: 'node', join })
  const api = apiOf(node)
  await api.call('documents.create', { name: 'notes' })
  await api.call('message.call', { agent: 'text@node', capability: 'text.stats', input: { text: 'x' } })
  await api.call('token.create', { name: 'program', scopes: ['read'] })
  for (const text of ['one', EARLIER.replace(' three', '')]) await edit(node, text)
  await untilTrue(
    async () => (await factsOf(member)).text === EARLIER.replace(' three', ''),
    'the member has the document'
  )
  await edit(member, EARLIER)
  await untilTrue(async () => (await factsOf(node)).text === EARLIER, 'the node has what the member wrote')
  await untilTrue(
    async () => (await streamsMarked(homeOf('node').home)) === 2,
    'the edits of the member have their mark'
  )
  await untilTrue(() => isLedgerMarked(homeOf('node')), 'the ledger has its mark')
  // Of what the node writes itself the mark is there at once.
  await edit(node, TEXT)
  const killed = path.join(await tempDir(t), 'killed')
  await copyHome(homeOf('node').home, killed)
  await Promise.all([node.close(), member.close()])
  // What only memory has is gone with any restart.
  const again = await start('node')
  const facts = await factsOf(again)
  await again.close()
  const stopped = homeOf('node').home
  const logs = (await filesOf(killed)).filter((file) => LOG.test(file))
  const files = [
    // Rules are the user's own text: a start names their fault, and no repair may invent others.
    ...(await filesOf(stopped)).flatMap((file) => (file === 'policy.yaml' ? [] : [{ of: 'stopped' as const, file }])),
    ...logs.map((file) => ({ of: 'killed' as const, file }))
  ]
  return { stopped, killed, member: homeOf('member').home, facts, files }
}

/** Its first part is large: an engine keeps such blocks in files of their own. */
const TEXT = `${'one '.repeat(8000)}two three four`
/** What others wrote of it, and this node before. */
const EARLIER = TEXT.replace(' four', '')

/** Streams of the document whose length is on record. */
async function streamsMarked(home: string): Promise<number> {
  const marks = await openNodeStore(home)
    .read<StoredMarks>(DOCUMENT_MARKS)
    .catch(() => null)
  return Object.keys(marks?.['notes'] ?? {}).length
}

/** Is every commit of the ledger of a new home on record beside it? */
async function isLedgerMarked({ home, ledger }: StartOptions['home']): Promise<boolean> {
  const commits = await commitsBehind(await journalFiles(ledger), 0)
  return (await ledgerMark(openNodeStore(home)).read()) >= commits.length
}

async function edit(node: RunningNode, text: string): Promise<void> {
  await apiOf(node).call('documents.edit', { document: 'notes', edit: { type: 'text', text } })
}

/** All files of a home that have a byte, found by walking it. */
async function filesOf(home: string): Promise<string[]> {
  const entries = await fs.readdir(home, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(home, path.join(entry.parentPath, entry.name)))
  const sizes = await Promise.all(files.map(async (file) => (await fs.stat(path.join(home, file))).size))
  return files.filter((_, place) => (sizes[place] ?? 0) > 0).sort()
}

/** Runs cases, some at once. */
export async function runDamages(
  scene: DamageScene,
  cases: readonly DamageCase[],
  { atOnce, onResult }: { readonly atOnce: number; onResult(result: DamageResult): void }
): Promise<void> {
  const queue = [...cases]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) onResult(await runDamage(scene, next))
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

/** Damages one file of a copy of the home, looks at it in every way that people have, and repairs it. */
async function runDamage(scene: DamageScene, one: DamageCase): Promise<DamageResult> {
  const ends: (() => unknown)[] = []
  try {
    const outcome = await outcomeOf(scene, one, { teardown: (end) => void ends.push(end) })
    return { ...one, outcome, fault: null }
  } catch (error) {
    return { ...one, outcome: 'fault', fault: error instanceof Error ? error.message : String(error) }
  } finally {
    // The directory was asked for first.
    for (const end of ends.reverse()) await end()
  }
}

async function outcomeOf(scene: DamageScene, { of, file, way }: DamageCase, t: Ends): Promise<string> {
  const nodes = await localNodes(t)
  const home = nodes.homeOf('node')
  await copyHome(scene[of], home.home)
  const bytes = await fs.readFile(path.join(scene[of], file))
  await fs.writeFile(path.join(home.home, file), damaged(bytes, way))
  const { config } = await nodes.optionsOf('node', {})
  const before = findings(await diagnoseHome({ home, config, now: Date.now() }))
  const seen = await look(nodes)
  const after = findings(await diagnoseHome({ home, config, now: Date.now() }))
  const reports = [...before, ...seen.reports]
  const other = differences(scene.facts, seen.facts)
  if (other.length > 0 && seen.reports.length === 0) throw new Error(`status does not tell: ${other.join(', ')}`)
  if (reports.length === 0) return 'whole'
  if (other.length === 0 && after.length === 0) return 'mended'
  const repairs = await repairHome(home, Date.now())
  await copyHome(scene.member, nodes.homeOf('member').home)
  await worksAgain(nodes, scene, repairs)
  return `${repairs.map(({ name }) => name).join('+') || 'nothing'} repaired`
}

/** Starts the node alone and asks it for all. @throws Error when something is served that is not what was there */
async function look({
  start
}: Awaited<ReturnType<typeof localNodes>>): Promise<{ facts: Facts | null; reports: string[] }> {
  const node = await start('node').catch((error: unknown) => asNodeError(error))
  if (node instanceof Error) {
    const { code, message, next } = node
    if (code === 'INTERNAL' || next.length === 0)
      throw new Error(`start fails with ${code} and says nothing that helps: ${message}`)
    return { facts: null, reports: [code] }
  }
  const facts = await factsOf(node)
  const { problems } = await apiOf(node).call('node.status', {})
  await node.close()
  return { facts, reports: problems.filter(({ code }) => code === 'STORE_DAMAGED').map(({ message }) => message) }
}

/** What differs, without what is refused. @throws Error for what may never be other than it was */
function differences(expected: Facts, facts: Facts | null): string[] {
  if (facts === null) return ['it does not start']
  const keys = Object.keys(expected) as (keyof Facts)[]
  const others = keys.filter((key) => JSON.stringify(facts[key]) !== JSON.stringify(expected[key]))
  const served = others.filter((key) => !String(facts[key]).startsWith('refused '))
  const wrong = served.filter((key) => key !== 'members')
  const unclear = others.filter((key) =>
    /^refused (?!STORE_DAMAGED|PEER_OFFLINE|DOCUMENT_NOT_FOUND)/.test(String(facts[key]))
  )
  if (unclear.length > 0)
    throw new Error(`nothing that helps is said: ${unclear.map((key) => `${key} ${String(facts[key])}`).join(', ')}`)
  if (wrong.length > 0)
    throw new Error(`served as truth: ${wrong.map((key) => `${key} ${JSON.stringify(facts[key])}`).join(', ')}`)
  return others.map((key) => `${key}: ${JSON.stringify(facts[key])}`)
}

/** After the repair the node is itself, has its mesh and the document, and writes; what is lost was said. */
async function worksAgain(
  nodes: Awaited<ReturnType<typeof localNodes>>,
  scene: DamageScene,
  repairs: readonly Repair[]
): Promise<void> {
  const [member, node] = [await nodes.start('member'), await nodes.start('node')]
  const isWhole = async (): Promise<boolean> => {
    const { text, members } = await factsOf(node)
    return text === scene.facts.text && members === scene.facts.members
  }
  await untilTrue(isWhole, 'the document and the members came back', PATIENCE_MS)
  const facts = await factsOf(node)
  const lost = new Set(repairs.filter((one) => one.lost !== null).map(({ name }) => name))
  for (const key of ['id', 'mesh', 'tasks', 'tokens'] as const) {
    const isSame = JSON.stringify(facts[key]) === JSON.stringify(scene.facts[key])
    if (!isSame && !(key === 'tasks' && lost.has('ledger')))
      throw new Error(`after the repair ${key} is ${JSON.stringify(facts[key])}`)
  }
  await edit(node, 'five')
  await untilTrue(async () => (await factsOf(member)).text === 'five', 'the member gets the edits', PATIENCE_MS)
}

async function factsOf(node: RunningNode): Promise<Facts> {
  const api = apiOf(node)
  const tried = async (call: Promise<unknown>): Promise<unknown> =>
    await call.catch((error: unknown) => `refused ${asNodeError(error).code}`)
  const tasks = api.call('tasks.list', {}).then((list) => list.tasks.map(({ id, state }) => [id, state]))
  const tokens = api.call('token.list', {}).then((list) => list.tokens.map(({ id }) => id))
  return {
    id: node.info.node.id,
    mesh: node.info.mesh.id,
    text: await tried(api.call('documents.read', { document: 'notes', type: 'text' }).then(({ value }) => value)),
    tasks: await tried(tasks),
    tokens: await tried(tokens),
    members: await tried(api.call('node.status', {}).then(({ mesh }) => mesh.members))
  }
}

async function copyHome(from: string, to: string): Promise<void> {
  await fs.cp(from, to, { recursive: true, filter: (file) => !PLACE.test(file) && !file.endsWith('.sock') })
  await fs.chmod(to, 0o700)
}

function damaged(bytes: Buffer, way: Way): Buffer {
  const middle = bytes.length >> 1
  if (way === 'cut') return bytes.subarray(0, middle)
  if (way === 'zeroed') return Buffer.alloc(bytes.length)
  const other = Buffer.from(bytes)
  other[middle] = (other[middle] ?? 0) ^ 1
  return other
}

function findings(checks: readonly DoctorCheck[]): string[] {
  return checks
    .filter(({ name, result }) => result !== 'ok' && name !== 'disk')
    .map(({ name, text }) => `${name}: ${text}`)
}
