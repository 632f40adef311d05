import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { openDurableLedger } from '../../src/adapters/storage/ledger/durable-ledger.js'
import type { LedgerOnDisk } from '../../src/adapters/storage/ledger/durable-ledger.js'
import type { LedgerDurability } from '../../src/ports/ledger.js'
import { utf8 } from '../../src/kit/ids.js'
import type { Ledger } from '../../src/ports/ledger.js'
import { tempDir } from './tmp.js'

interface Home {
  readonly dir: string
  readonly open: () => Promise<LedgerOnDisk>
  /** Resolves when the mark tells of so many commits. */
  readonly marked: (commits: number) => Promise<void>
}

/** A place for a ledger; those that were opened are closed before it goes. */
export async function home(t: Assert, durability: LedgerDurability = 'power'): Promise<Home> {
  const dir = path.join(await tempDir(t), 'ledger')
  let commits = 0
  const listeners = new Set<() => void>()
  const mark = {
    read: () => Promise.resolve(commits),
    write: (number: number) => {
      commits = number
      for (const listener of listeners) listener()
      return Promise.resolve()
    }
  }
  return {
    dir,
    marked: (most) =>
      new Promise((resolve) => {
        // The ledger's own timer keeps no process alive.
        const alive = setInterval(() => {}, 1000)
        const look = (): void => {
          if (commits < most) return
          clearInterval(alive)
          resolve()
        }
        listeners.add(look)
        look()
      }),
    open: async () => {
      const ledger = await openDurableLedger({ dir, durability, mark })
      t.teardown(() => ledger.close())
      return ledger
    }
  }
}

/** The change that writes the key of a number. */
export function numbered(at: number): { key: string; value: Uint8Array } {
  return { key: keyOf(at), value: utf8(`value ${at}`) }
}

function keyOf(at: number): string {
  return `key/${String(at).padStart(4, '0')}`
}

/** The keys of the first `count` numbers. */
export function keys(count: number): string[] {
  return Array.from({ length: count }, (_, at) => keyOf(at + 1))
}

/** The keys of numbers that a ledger has. */
export async function keysOf(ledger: Ledger): Promise<string[]> {
  const entries = await ledger.list({ from: 'key/', to: 'key0', limit: 1000 })
  return entries.map(({ key }) => key)
}

/** Names of the journal files in the directory of a ledger. */
export async function journals(dir: string): Promise<string[]> {
  return (await fs.readdir(dir)).filter((name) => name.startsWith('journal-'))
}
