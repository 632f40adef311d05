import fs from 'node:fs/promises'
import type { Clock } from '../../kit/clock.js'
import type { NodeError } from '../../kit/errors.js'
import type { Audit, AuditEvent } from '../../ports/audit.js'
import { AUDIT_CHAINS } from './audit-chains.js'
import type { AuditChain } from './audit-chains.js'
import { openAuditFile } from './audit-file.js'
import { FRESH_HEAD, isGone, readHead, writeHead } from './audit-segments.js'
import { storeError } from './store-errors.js'

/** What the audit log is made of. */
export interface AuditLogOptions {
  /** Its directory; made 0700 when it is not there. */
  readonly dir: string
  readonly clock: Clock
  /** Told of each failed write (it is tried again) and how many lines had to be dropped that are not on record yet. */
  readonly onError: (error: NodeError, droppedLines: number) => void
  /** Default: those that ship. */
  readonly chains?: readonly AuditChain[]
}

/**
 * Opens the audit log of a node: a chain of lines for each group of kinds (see {@link AUDIT_CHAINS}), each with files, bounds and
 * a head of its own. A chain that was there and is gone altogether stays broken.
 * @throws NodeError NO_PERMISSION, DISK_FULL
 */
export async function openAudit({ dir, clock, onError, chains = AUDIT_CHAINS }: AuditLogOptions): Promise<Audit> {
  const names = chains.map((one) => one.name)
  const lost = new Set(await lostChains(dir, names))
  const files = new Map<string, Audit>()
  await begin(
    dir,
    names.filter((name) => !lost.has(name))
  )
  try {
    for (const chain of chains) {
      const opening = { chains: names, isLost: lost.has(chain.name) }
      files.set(chain.name, await openAuditFile({ dir, chain, clock, onError, opening }))
    }
  } catch (error) {
    for (const file of files.values()) await file.close()
    throw error
  }
  return new AuditLog(files, chains)
}

/** No head names the others before all have one: a start that is cut off must not look like chains taken away. */
async function begin(dir: string, names: readonly string[]): Promise<void> {
  try {
    await fs.mkdir(dir, { recursive: true, mode: 0o700 })
    for (const name of names) if (await isGone({ dir, name })) await writeHead({ dir, name }, FRESH_HEAD)
  } catch (error) {
    throw storeError(error, dir)
  }
}

/** Names of chains that others of the log name in their heads, and of which nothing is there. */
export async function lostChains(dir: string, names: readonly string[]): Promise<string[]> {
  const heads = await Promise.all(names.map((name) => readHead({ dir, name })))
  const named = new Set(heads.flatMap((head) => head?.chains ?? []))
  const gone = await Promise.all(names.map(async (name) => named.has(name) && (await isGone({ dir, name }))))
  return names.filter((_, index) => gone[index])
}

class AuditLog implements Audit {
  readonly #files: ReadonlyMap<string, Audit>
  readonly #byKind: ReadonlyMap<AuditEvent['kind'], Audit>

  constructor(files: ReadonlyMap<string, Audit>, chains: readonly AuditChain[]) {
    this.#files = files
    const byKind = new Map<AuditEvent['kind'], Audit>()
    for (const { kinds, name } of chains) {
      const file = files.get(name)
      if (file !== undefined) for (const kind of kinds) byKind.set(kind, file)
    }
    this.#byKind = byKind
  }

  append(event: AuditEvent): void {
    this.#byKind.get(event.kind)?.append(event)
  }

  async flush(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.flush()))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.close()))
  }
}
