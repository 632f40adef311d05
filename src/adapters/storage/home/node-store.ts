import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../../kit/errors.js'
import { canonicalJson, isRecord } from '../../../kit/json.js'
import type { NodeStore } from '../../../ports/storage.js'
import { putInPlace, readIfThere, replaceFile, syncDir } from './atomic-file.js'
import { storeError } from './store-errors.js'
import type { FailedWrite } from './write-faults.js'

const NAME = /^[a-z0-9]+([-_][a-z0-9]+)*$/
/** Endings of the two files of a document. */
const FIRST = '.json'
const COPY = '.json.copy'
/** How the file of a document begins. */
const BEGINNING = '{"sha256":'

/** Gets the result of a write of an absolute path; null: it worked. */
type OnWrite = (file: string, failed: FailedWrite | null) => void

/** A file of a stored document that is damaged, or gone while the other one is there. */
export interface DamagedFile {
  readonly name: string
  readonly file: string
  /** Is the other file of the document whole? Then nothing is lost. */
  readonly isMendable: boolean
}

/**
 * Stores each document as `<dir>/<name>.json`: `{"sha256": <of the canonical JSON of value>, "value": ...}`, mode 0600.
 * The same text follows as `<name>.json.copy`, unless the disk refuses it. Reads take the first whole file. The
 * directory must exist. Names are words of `a-z 0-9` with a `-` or `_` between them, as those of imports in the config.
 * Writes of one name run in the order of the calls. A damaged file is never overwritten: a caller that could not read
 * it would replace data that may still be recovered.
 * @param onWrite gets the result of each write and removal; `again` writes the stored content anew
 */
export function openNodeStore(dir: string, onWrite: OnWrite = () => {}): NodeStore {
  const tails = new Map<string, Promise<void>>()
  /** Names of documents that could not be read. */
  const damaged = new Set<string>()

  async function readWhole(name: string): Promise<{ readonly value: unknown } | null> {
    damaged.add(name)
    const whole = wholeOf(await look(dir, name))
    damaged.delete(name)
    return whole
  }

  function inOrder(name: string, run: () => Promise<void>): Promise<void> {
    const [file] = filesOf(dir, name)
    const before = tails.get(name) ?? Promise.resolve()
    const result = before.then(run).catch((error: unknown) => Promise.reject(storeError(error, file)))
    // A failed write must not fail the next.
    const again = (): Promise<void> => inOrder(name, async () => await rewrite(file, await readWhole(name)))
    const tail = result.then(
      () => onWrite(file, null),
      (error: unknown) => onWrite(file, { error, again })
    )
    tails.set(name, tail)
    return result
  }

  return {
    async read<T>(name: string) {
      await tails.get(name)
      const whole = await readWhole(name)
      // The caller names the type of its own data; the checksum proves that it is unchanged.
      return whole === null ? null : (whole.value as T)
    },
    async write(name, value) {
      // Encoded at once: later changes of the value are not this write's.
      const text = encode(value)
      await inOrder(name, async () => {
        const [first, copy] = filesOf(dir, name)
        // It may have been moved aside since.
        if (damaged.has(name)) await readWhole(name)
        await putInPlace(first, text)
        // An old copy must not return in the place of the current file; the next write or start makes a new one.
        await putInPlace(copy, text).catch(() => fs.rm(copy, { force: true }))
        await syncDir(dir)
      })
    },
    remove: (name) => inOrder(name, async () => await removeFiles(dir, name))
  }
}

/** The copy first: alone it would be taken for a document whose first file is lost. */
async function removeFiles(dir: string, name: string): Promise<void> {
  for (const file of filesOf(dir, name).toReversed()) await fs.rm(file, { force: true })
  await syncDir(dir)
}

/** Writes stored content anew; without any, a file beside `file` for a moment. */
async function rewrite(file: string, whole: { readonly value: unknown } | null): Promise<void> {
  if (whole !== null) return await replaceFile(file, encode(whole.value))
  const trial = `${file}.trial`
  await replaceFile(trial, encode(null))
  await fs.rm(trial, { force: true })
}

/**
 * The files of stored documents in a directory that are damaged, one of each document that is lost. Nothing is changed.
 * @throws NodeError NO_PERMISSION
 */
export async function damagedDocuments(dir: string): Promise<readonly DamagedFile[]> {
  return (await lookAtAll(dir)).flatMap(({ name, files }) => damagedOf(name, files))
}

/**
 * The texts of all stored documents in a directory but those left out, each of the first file that is whole. A file
 * without a copy that does not begin as a document may be anybody's: it is given as it is. @throws NodeError
 * STORE_DAMAGED when both files of a document are damaged
 */
export async function documentTexts(
  dir: string,
  leftOut: ReadonlySet<string>
): Promise<readonly { readonly name: string; readonly text: string }[]> {
  const found = (await lookAtAll(dir)).filter(({ name }) => !leftOut.has(name))
  return await Promise.all(found.map(async ({ name, files }) => ({ name, text: await textOf(files) })))
}

async function textOf(files: readonly Found[]): Promise<string> {
  const whole = files.find(({ document }) => document !== null)?.document
  if (whole !== undefined && whole !== null) return encode(whole.value)
  const [first] = files
  const faults = files.flatMap(({ fault }) => (fault === null ? [] : [fault]))
  const fault = faults[0] ?? new NodeError('INTERNAL', 'a stored document without a file')
  if (first === undefined || first.fault === null || faults.length > 1) throw fault
  const text = await fs.readFile(first.file, 'utf8')
  if (text.startsWith(BEGINNING)) throw fault
  return text
}

/**
 * Rewrites each damaged, missing or older file of a stored document from the whole other one. Call it only while no
 * other process uses the directory.
 * @returns the files that were damaged or gone.
 * @throws NodeError DISK_FULL, NO_PERMISSION
 */
export async function mendDocuments(dir: string): Promise<readonly DamagedFile[]> {
  const mended: DamagedFile[] = []
  for (const { name, files } of await lookAtAll(dir)) {
    const whole = files.find(({ document }) => document !== null)
    if (whole === undefined) continue
    const text = encode(whole.document?.value)
    const others = files.filter(({ document }) => document === null || encode(document.value) !== text)
    for (const { file } of others)
      await replaceFile(file, text).catch((error: unknown) => Promise.reject(storeError(error, file)))
    mended.push(...damagedOf(name, files))
  }
  return mended
}

/** The content of one file of a document. */
interface Found {
  readonly file: string
  /** null: it is damaged or not there. */
  readonly document: { readonly value: unknown } | null
  /** null: it is whole or not there. */
  readonly fault: NodeError | null
}

async function lookAtAll(dir: string): Promise<{ readonly name: string; readonly files: readonly Found[] }[]> {
  const entries = await fs
    .readdir(dir, { withFileTypes: true })
    .catch((error: unknown) => Promise.reject(storeError(error, dir)))
  const files = entries.flatMap((entry) => (entry.isFile() ? [entry.name] : []))
  const names = files.flatMap((file) =>
    [FIRST, COPY].flatMap((ending) => (file.endsWith(ending) ? [file.slice(0, -ending.length)] : []))
  )
  const known = [...new Set(names)].filter((name) => NAME.test(name)).sort()
  return await Promise.all(known.map(async (name) => ({ name, files: await look(dir, name) })))
}

/**
 * The content of the first whole file of a document; null when there is no file.
 * @throws NodeError STORE_DAMAGED when no file is whole
 */
function wholeOf(found: readonly Found[]): { readonly value: unknown } | null {
  const whole = found.find(({ document }) => document !== null)?.document ?? null
  const fault = found.find(({ fault: one }) => one !== null)?.fault ?? null
  if (whole === null && fault !== null) throw fault
  return whole
}

function look(dir: string, name: string): Promise<Found[]> {
  return Promise.all(filesOf(dir, name).map(lookAt))
}

async function lookAt(file: string): Promise<Found> {
  try {
    const text = await readIfThere(file)
    return { file, document: text === null ? null : { value: decode(file, text) }, fault: null }
  } catch (error) {
    const fault = storeError(error, file)
    if (fault.code !== 'STORE_DAMAGED') throw fault
    return { file, document: null, fault }
  }
}

/** A home of an earlier version has no copies: one that is gone is no damage. */
function damagedOf(name: string, files: readonly Found[]): DamagedFile[] {
  const isMendable = files.some(({ document }) => document !== null)
  const damaged = files.filter(({ document, fault }, place) => fault !== null || (place === 0 && document === null))
  return (isMendable ? damaged : damaged.slice(0, 1)).map(({ file }) => ({ name, file, isMendable }))
}

function filesOf(dir: string, name: string): readonly [first: string, copy: string] {
  if (!NAME.test(name)) throw new NodeError('INTERNAL', `not a name of a stored document: ${name}`)
  return [path.join(dir, name + FIRST), path.join(dir, name + COPY)]
}

function encode(value: unknown): string {
  const text = canonicalJson(value)
  return `${BEGINNING}"${digest(text)}","value":${text}}\n`
}

function decode(file: string, text: string): unknown {
  try {
    const document: unknown = JSON.parse(text)
    if (isRecord(document) && document['sha256'] === digest(canonicalJson(document['value']))) return document['value']
  } catch {
    // falls through to the one answer for every kind of damage
  }
  throw new NodeError('STORE_DAMAGED', `the file ${file} is damaged`)
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
