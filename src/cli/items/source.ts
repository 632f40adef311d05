import { open, stat } from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { isRecord, SIZED_LIMITS } from '../../kit/json.js'
import { shellWord } from '../../kit/text.js'
import { boundedJson } from '../options.js'
import { readStdin } from '../stdin.js'
import { utf8Text } from '../utf8-text.js'
import { globFiles, isGlob } from './glob.js'

/** Most items of one swarm. */
export const ITEMS_MAX = 10_000
const MIB = 1_048_576
/** Largest attached file in bytes: 15 MiB. A message has 16 MiB, with its header and the rest of the input. */
export const ATTACHMENT_MAX = 15 * MIB
/** Most bytes of all attached files: 47 MiB. As base64 they fit in a request to the node. */
export const ATTACHED_MAX = 47 * MIB
const LIST_MAX_BYTES = 64 * MIB
const NAME_MAX = 4096
/** Items lie one level inside their list. */
const LIST_LIMITS = { ...SIZED_LIMITS, maxDepth: SIZED_LIMITS.maxDepth + 1 }

/** One item before its input is made. */
export interface RawItem {
  /** As it was given; results name it so. */
  readonly name: string
  /** The value of `{item}`: a line, a JSON value, a path. */
  readonly value: unknown
  /** The path, for items that are files. */
  readonly file: string | null
  /** With `--attach`: the contents, as text when they are UTF-8. */
  readonly contents: string | Uint8Array | null
}

/**
 * Reads the items of a swarm. `-` is standard input, an existing path is a file of lines or JSON, any other source is a
 * glob.
 * @throws NodeError USAGE when there is no item, too much input, or a file too large to attach
 */
export async function readItems(
  source: string,
  options: { readonly cwd: string; readonly attach: boolean }
): Promise<RawItem[]> {
  const items = source === '-' ? listItems(await readStdin(LIST_MAX_BYTES)) : await fileItems(source, options)
  if (source === '-' && options.attach) throw attachNeedsGlob()
  if (items.length === 0)
    throw new NodeError('USAGE', `--items ${source === '-' ? 'from stdin' : JSON.stringify(source)} gives no item`, {
      next: ['a2a-node swarm run --help']
    })
  if (items.length > ITEMS_MAX)
    throw new NodeError('USAGE', `${items.length} items; a swarm takes at most ${ITEMS_MAX}`)
  return items
}

async function fileItems(
  source: string,
  { cwd, attach }: { readonly cwd: string; readonly attach: boolean }
): Promise<RawItem[]> {
  const stats = await stat(path.resolve(cwd, source)).catch(() => null)
  if (stats?.isDirectory())
    throw new NodeError('USAGE', `${source} is a directory`, {
      next: [`--items ${shellWord(`${source.replace(/\/$/, '')}/**`)}`]
    })
  if (stats !== null) {
    if (attach) throw attachNeedsGlob()
    const text = utf8Text(await readBounded(path.resolve(cwd, source), { name: source, max: LIST_MAX_BYTES }), {
      name: source,
      again: null
    })
    return listItems(text.replace(/^\ufeff/, ''))
  }
  if (!isGlob(source))
    throw new NodeError('USAGE', `no file ${JSON.stringify(source)}`, { next: ["--items '<glob or file of lines>'"] })
  const files = await globFiles(source, cwd)
  if (files.length > ITEMS_MAX)
    throw new NodeError('USAGE', `${files.length} files match; a swarm takes at most ${ITEMS_MAX} items`)
  const items: RawItem[] = []
  let left = ATTACHED_MAX
  for (const file of files) {
    const attached = attach ? await attachment(path.resolve(cwd, file), file) : null
    left -= attached?.bytes ?? 0
    if (left < 0)
      throw new NodeError('USAGE', `the files have more than ${ATTACHED_MAX} bytes together: send fewer at once`, {
        next: ['a2a-node swarm run --help']
      })
    items.push({ name: file, value: file, file, contents: attached?.contents ?? null })
  }
  return items
}

function attachNeedsGlob(): NodeError {
  return new NodeError('USAGE', '--attach sends the files of a glob; give --items a quoted glob', {
    next: ["--items 'src/**/*.ts'"]
  })
}

/**
 * Items of a text: a JSON array, or one item a line (a line may be JSON; blank ones are left out).
 * @throws NodeError USAGE for JSON beyond its limits
 */
export function listItems(text: string): RawItem[] {
  const whole = text.trimStart().startsWith('[') ? parse(text) : undefined
  if (Array.isArray(whole))
    return whole.map((value: unknown) => rawItem(typeof value === 'string' ? value : JSON.stringify(value), value))
  const lines = text.split('\n').map((line) => line.replace(/\r$/, ''))
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const value = line.trimStart().startsWith('{') ? parse(line) : undefined
      return rawItem(line, isRecord(value) ? value : line)
    })
}

function rawItem(name: string, value: unknown): RawItem {
  // Cut at whole characters: the name is displayed and compared, the value stays whole.
  return {
    name: name.length <= NAME_MAX ? name || '""' : [...name].slice(0, NAME_MAX / 2).join(''),
    value,
    file: null,
    contents: null
  }
}

function parse(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return boundedJson(value, '--items', LIST_LIMITS)
}

/** The contents of a file, and its size in bytes. */
interface ReadFile {
  readonly contents: string | Uint8Array
  readonly bytes: number
}

async function attachment(file: string, name: string): Promise<ReadFile> {
  const read = await readBounded(file, { name, max: ATTACHMENT_MAX })
  const bytes = read.byteLength
  try {
    return { contents: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(read), bytes }
  } catch {
    return { contents: new Uint8Array(read), bytes }
  }
}

/** Reads a file that may grow meanwhile, never more than `max` bytes. */
async function readBounded(
  file: string,
  { name, max }: { readonly name: string; readonly max: number }
): Promise<Uint8Array> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw new NodeError('USAGE', `cannot read ${name}: ${fileReason(error)}`, { cause: error })
  })
  try {
    const { size } = await handle.stat()
    if (size > max) throw tooLarge(name, size, max)
    const chunks: Buffer[] = []
    let read = 0
    for await (const chunk of handle.createReadStream({ autoClose: false, end: max }) as AsyncIterable<Buffer>) {
      read += chunk.length
      chunks.push(chunk)
    }
    if (read > max) throw tooLarge(name, read, max)
    return Buffer.concat(chunks)
  } catch (error) {
    throw error instanceof NodeError
      ? error
      : new NodeError('USAGE', `cannot read ${name}: ${fileReason(error)}`, { cause: error })
  } finally {
    await handle.close()
  }
}

function tooLarge(name: string, size: number, max: number): NodeError {
  return new NodeError('USAGE', `${name} has ${size} bytes, at most ${max} fit`, {
    next: ['a2a-node swarm run --help']
  })
}
