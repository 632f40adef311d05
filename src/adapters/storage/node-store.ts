import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { canonicalJson, isRecord } from '../../kit/json.js'
import type { NodeStore } from '../../ports/storage.js'
import { readIfThere, replaceFile, syncDir } from './atomic-file.js'
import { storeError } from './store-errors.js'

/**
 * Keeps each document as `<dir>/<name>.json`: `{"sha256": <of the canonical JSON of value>, "value": ...}`, mode 0600.
 * The directory must exist. Names are kebab-case. Writes of one name are done in the order of the calls.
 */
export function openNodeStore(dir: string): NodeStore {
  const tails = new Map<string, Promise<void>>()

  function inOrder(name: string, run: (file: string) => Promise<void>): Promise<void> {
    const file = fileOf(dir, name)
    const before = tails.get(name) ?? Promise.resolve()
    const result = before.then(() => run(file)).catch((error: unknown) => Promise.reject(storeError(error, file)))
    // A failed write must not fail the next.
    const tail = result.catch(() => {})
    tails.set(name, tail)
    return result
  }

  return {
    async read<T>(name: string) {
      await tails.get(name)
      const file = fileOf(dir, name)
      const text = await readIfThere(file).catch((error: unknown) => Promise.reject(storeError(error, file)))
      // The caller names the type of what it wrote itself; the checksum says that it is just that.
      return text === null ? null : (decode(file, text) as T)
    },
    async write(name, value) {
      // Encoded at once: later changes of the value are not this write's.
      const text = encode(value)
      await inOrder(name, (file) => replaceFile(file, text))
    },
    remove: (name) =>
      inOrder(name, async (file) => {
        await fs.rm(file, { force: true })
        await syncDir(dir)
      })
  }
}

function fileOf(dir: string, name: string): string {
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) throw new NodeError('INTERNAL', `not a name of a stored document: ${name}`)
  return path.join(dir, `${name}.json`)
}

function encode(value: unknown): string {
  const text = canonicalJson(value)
  return `{"sha256":"${digest(text)}","value":${text}}\n`
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
