import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { syncDir } from './atomic-file.js'
import { codeOf, storeError } from './store-errors.js'

/**
 * Directory of a home that takes the files of its former node while a change of identity runs; it gets its final name
 * at the end.
 */
const MOVING = 'former-node.moving'
const FORMER = 'former-node-'
/**
 * Entries of a home that belong to its node, beside its documents: the flags of its starts name addresses that it
 * serves.
 */
const OF_THE_NODE = new Set(['store', 'documents', 'ledger', 'audit', 'audit.seen', 'start.flags'])
/** Former stores that a repair moved aside. */
const DAMAGED = /\.damaged-\d/
/**
 * Files of a node in `run`, but for the lock of the home, which this process holds. Other files may be anybody's where
 * `run` is a link.
 */
const OF_A_RUN = /^(?:agent-\d+\.json|backup|control\.sock|fault|stays-after-clients)$/
/** A file of a document, or one that an interrupted write left. */
const DOCUMENT = /^([a-z0-9]+(?:-[a-z0-9]+)*)\.json(\.copy)?(\.tmp)?$/
/** Documents with accepted definitions of imported tool servers and agents. */
const IMPORT = /^(?:mcp|a2a)-/
/** The document with the tokens of language models that agents used today: their budgets go on. */
const USAGE = 'llm-days'
/** How the file of a document begins. */
const BEGINNING = '{"sha256":'

/** The directory that {@link moveFormerNode} fills; it exists only while a change of identity is unfinished. */
export function movingDir(home: string): string {
  return path.join(home, MOVING)
}

/** The directory in which {@link moveFormerNode} leaves the files. */
export function formerDir(home: string, stamp: string): string {
  return path.join(home, FORMER + stamp)
}

/** Was a change of identity of this home begun and not finished? */
export async function isIdentityMoving(home: string): Promise<boolean> {
  return await exists(movingDir(home))
}

/** Accepted definitions of imported tool servers and agents in a home. */
export async function importsIn(home: string): Promise<readonly string[]> {
  const names = (await fs.readdir(home)).flatMap((file) => DOCUMENT.exec(file)?.[1] ?? [])
  return [...new Set(names)].filter((name) => IMPORT.test(name))
}

/**
 * Refuses a home with an unfinished change of identity: it may hold the key of its former node without its membership.
 * @throws NodeError CONFLICT
 */
export async function assertIdentityWhole(home: string): Promise<void> {
  if (!(await isIdentityMoving(home))) return
  throw new NodeError('CONFLICT', `the change of identity of ${home} was interrupted; run it again to finish it`, {
    next: ['a2a-node doctor --new-identity']
  })
}

/**
 * Moves the files of a node out of its home by renames, into `<home>/former-node-<stamp>` (0700). Settings, rules,
 * agent files, accepted imports and unknown files stay. A link is moved, and its target stays. After a kill
 * {@link isIdentityMoving} holds, and a further call moves the rest. Hold the lock of the home.
 * @param last runs when all is moved, before the change counts as finished.
 * @returns the directory of the moved files
 * @throws NodeError NO_PERMISSION, DISK_FULL; CONFLICT for a part of the home that is mounted from elsewhere
 */
export async function moveFormerNode(home: string, stamp: string, last: () => Promise<void>): Promise<string> {
  const moving = movingDir(home)
  const former = formerDir(home, stamp)
  try {
    // Before anything is changed: a file that cannot be read ends the run.
    const entries = await entriesOfNode(home)
    await fs.mkdir(path.join(moving, 'run'), { recursive: true, mode: 0o700 })
    await syncDir(home)
    for (const name of entries) await move(path.join(home, name), path.join(moving, name))
    await syncDir(moving)
    await syncDir(home)
    await last()
    await fs.rename(moving, former)
    await syncDir(home)
    return former
  } catch (error) {
    throw storeError(error, home)
  }
}

/** Files of a home that a reset removes with those of its node. */
const OF_A_HOME = /^(?:ballast|mcp-clients|policy\.seen|node\.log(?:\.\d+)?|former-node\..*|former-node-\d.*)$/
/** Files of `store` and other directories of a node; a directory without them may be anybody's. */
const MARKS: Readonly<Record<string, RegExp>> = {
  store: /^CORESTORE$/,
  documents: /^CORESTORE$/,
  ledger: /^journal-/,
  audit: /\.(?:head|ndjson)$/,
  'mcp-clients': /^[0-9a-f]{16}\.json$/
}
/** Documents without which no node was in a home; a reset removes them last, so that another run finishes its work. */
const FIRST = /^(?:seed|mesh|node)\.json/

/**
 * Entries of a home that a node made, relative to it, in the order of their removal: also accepted imports, logs and
 * data of former nodes. Settings, rules, agent files and unknown files are none. Empty where no node was.
 */
export async function entriesOfHome(home: string): Promise<readonly string[]> {
  const names = await fs.readdir(home).catch(noneIfAbsent)
  const found = new Set(names.length === 0 ? [] : await entriesOfNode(home))
  for (const name of names) if (OF_A_HOME.test(name) || (await isDocument(home, name))) found.add(name)
  for (const name of [...found])
    if (!(await isMarked(home, name)) || (DOCUMENT.test(name) && !(await isWritten(home, name)))) found.delete(name)
  const entries = [...found].sort((a, b) => Number(FIRST.test(a)) - Number(FIRST.test(b)))
  return entries.some((name) => FIRST.test(name) || name === 'store') ? entries : []
}

/** Is it no directory of a known name with foreign content? */
async function isMarked(home: string, name: string): Promise<boolean> {
  const mark = Object.hasOwn(MARKS, name) ? MARKS[name] : undefined
  if (mark === undefined) return true
  const names = await fs.readdir(path.join(home, name)).catch(() => [])
  return names.some((one) => mark.test(one))
}

/** Did a node write the file of a document, or its twin? A foreign file may have such a name. */
async function isWritten(home: string, file: string): Promise<boolean> {
  const twin = file.endsWith('.copy') ? file.slice(0, -'.copy'.length) : `${file}.copy`
  for (const one of [file, twin]) {
    const text = await fs.readFile(path.join(home, one), 'utf8').catch(() => '')
    if (text.startsWith(BEGINNING)) return true
  }
  return false
}

/** A moved entry stays as it is: the entry of that name in the home is newer than the interruption. */
async function move(from: string, to: string): Promise<void> {
  if (await exists(to)) return
  try {
    await fs.rename(from, to)
  } catch (error) {
    const isElsewhere = codeOf(error) === 'EXDEV'
    // Records of processes, in a `run` that links to memory.
    if (isElsewhere && path.basename(path.dirname(to)) === 'run') return await fs.rm(from, { recursive: true })
    if (!isElsewhere && codeOf(error) !== 'EBUSY') throw error
    const state = `${from} is mounted from elsewhere, so it cannot be moved: unmount it, then run the change of identity again`
    throw new NodeError('CONFLICT', state, { cause: error, next: ['findmnt', 'a2a-node doctor --new-identity'] })
  }
}

async function entriesOfNode(home: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await fs.readdir(home, { withFileTypes: true })) {
    const isOurs = OF_THE_NODE.has(entry.name) || DAMAGED.test(entry.name)
    if (isOurs || (await isDocumentOfNode(home, entry.name))) found.push(entry.name)
  }
  const run = await fs.readdir(path.join(home, 'run')).catch(noneIfAbsent)
  return [...found, ...run.filter((name) => OF_A_RUN.test(name)).map((name) => path.join('run', name))]
}

/**
 * A `.json` file that is no document of the node may be anybody's. A link to a document is one: a node would read it.
 */
async function isDocumentOfNode(home: string, file: string): Promise<boolean> {
  const [, name = USAGE] = DOCUMENT.exec(file) ?? []
  return !IMPORT.test(name) && name !== USAGE && (await isDocument(home, file))
}

async function isDocument(home: string, file: string): Promise<boolean> {
  const [, name, copy, aside] = DOCUMENT.exec(file) ?? []
  if (name === undefined) return false
  if (aside === undefined && (copy !== undefined || (await exists(path.join(home, `${file}.copy`))))) return true
  const place = path.join(home, file)
  const stats = await fs.stat(place).catch(() => null)
  return stats?.isFile() === true && (await fs.readFile(place, 'utf8')).startsWith(BEGINNING)
}

async function exists(file: string): Promise<boolean> {
  return await fs.lstat(file).then(
    () => true,
    () => false
  )
}

function noneIfAbsent(error: unknown): [] {
  if (codeOf(error) === 'ENOENT') return []
  throw error
}
