import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { isRecord } from '../../kit/json.js'
import { isClaimed, type RpcMessage, paramsOf } from '../../kit/mcp/rpc-message.js'

/** Bytes of the file of one kind of client; a larger state is not kept. */
export const MAX_KNOWN_BYTES = 8_388_608
/** Answers in it: handshakes and pages of lists. */
const MAX_ANSWERS = 64
/** Files of a home; the oldest ones go. */
const MAX_FILES = 32
const FORMAT = 1

/** Methods with answers that stay right until a list changes. */
const KEPT: ReadonlySet<unknown> = new Set([
  'initialize',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list'
])

/** Is it a request whose last answer is kept? */
export function isKept(request: RpcMessage): boolean {
  return KEPT.has(request['method'])
}

/**
 * The last answers of a node to handshakes and lists, for clients that come while no node runs. They are in one file
 * for each kind of client, since rights decide what is listed. A file that cannot be read or written counts as none.
 */
export class LastKnown {
  readonly #file: string
  #answers: Map<string, RpcMessage> | null = null
  #isChanged = false

  constructor(file: string) {
    this.#file = file
  }

  /** The last answer to such a request; null when none is known. */
  answerTo(request: RpcMessage): RpcMessage | null {
    return isKept(request) ? (this.#all.get(keyOf(request)) ?? null) : null
  }

  /** Remembers an answer, in memory until {@link write}. */
  learn(request: RpcMessage, result: RpcMessage): void {
    if (!isKept(request)) return
    const key = keyOf(request)
    // A first page begins a list anew: later pages of the former one are of no use.
    if (paramsOf(request)['cursor'] === undefined && request['method'] !== 'initialize')
      for (const old of this.#all.keys()) if (old !== key && old.startsWith(key)) this.#all.delete(old)
    const oldest = this.#all.size >= MAX_ANSWERS ? this.#all.keys().next().value : undefined
    if (oldest !== undefined) this.#all.delete(oldest)
    this.#all.set(key, result)
    this.#isChanged = true
  }

  /** Writes the file when something changed: a new one takes its name. */
  write(): void {
    if (!this.#isChanged) return
    this.#isChanged = false
    const text = JSON.stringify({ format: FORMAT, answers: Object.fromEntries(this.#all) })
    const fresh = `${this.#file}.${process.pid}.tmp`
    try {
      if (Buffer.byteLength(text) > MAX_KNOWN_BYTES || text === readText(this.#file)) return
      mkdirSync(path.dirname(this.#file), { recursive: true, mode: 0o700 })
      writeFileSync(fresh, text, { mode: 0o600 })
      renameSync(fresh, this.#file)
      removeOldest(path.dirname(this.#file))
    } catch {
      // A client is served without it as well: it only waits longer next time.
      remove(fresh)
    }
  }

  get #all(): Map<string, RpcMessage> {
    return (this.#answers ??= new Map(answersIn(readText(this.#file))))
  }
}

function keyOf(request: RpcMessage): string {
  const { cursor, protocolVersion } = paramsOf(request)
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const page = request['method'] === 'initialize' ? text(protocolVersion) : text(cursor)
  return `${String(request['method'])} ${isClaimed(request) ? 'claimed' : 'handshake'} ${page}`
}

/** The text of a file; null when it cannot be read, or is larger than one that was written here. */
function readText(file: string): string | null {
  try {
    return statSync(file).size > MAX_KNOWN_BYTES ? null : readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

function answersIn(text: string | null): [string, RpcMessage][] {
  try {
    const { format, answers } = JSON.parse(text ?? '{}') as RpcMessage
    if (format !== FORMAT || !isRecord(answers)) return []
    return Object.entries(answers)
      .filter((entry): entry is [string, RpcMessage] => isRecord(entry[1]))
      .slice(0, MAX_ANSWERS)
  } catch {
    return []
  }
}

/** Another client may have removed it, or its directory may be none. */
function remove(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {}
}

function removeOldest(dir: string): void {
  const files = readdirSync(dir).map((name) => path.join(dir, name))
  if (files.length <= MAX_FILES) return
  const aged = files.map((file) => ({ file, at: statSync(file).mtimeMs })).sort((one, other) => one.at - other.at)
  for (const { file } of aged.slice(0, files.length - MAX_FILES)) remove(file)
}
