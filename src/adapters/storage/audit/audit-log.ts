import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../../../kit/clock.js'
import type { NodeError } from '../../../kit/errors.js'
import type { Audit, AuditEvent } from '../../../ports/audit.js'
import { AUDIT_CHAINS } from './audit-chains.js'
import type { AuditChain } from './audit-chains.js'
import { openAuditFile } from './audit-file.js'
import { auditError, FRESH_HEAD, isGone, readHead, segmentFiles, writeHead } from './audit-segments.js'
import { readIfThere, replaceFile } from '../home/atomic-file.js'

/** Options of the audit log. */
export interface AuditLogOptions {
  /** Its directory; made 0700 when it is not there. */
  readonly dir: string
  /**
   * Absolute path of a small file outside `dir` that names every chain begun so far. It reveals a log that was removed
   * entirely; without it, such a loss is not noticed.
   */
  readonly seen?: string
  readonly clock: Clock
  /**
   * Called for each failed write (it is tried again), with the number of lines that had to be dropped and are not on
   * record yet, and the file of the chain.
   */
  readonly onError: (error: NodeError, droppedLines: number, file: string) => void
  /** Called for the first write of a file that works again. */
  readonly onRecovered?: (file: string) => void
  /** Default: those that ship. */
  readonly chains?: readonly AuditChain[]
}

/**
 * Opens the audit log of a node: one chain of lines for each group of kinds, see {@link AUDIT_CHAINS}. Each chain has
 * its own files, bounds and head. A chain that was removed entirely stays broken.
 * @throws NodeError NO_PERMISSION, DISK_FULL, STORE_DAMAGED (a directory in the place of a file, or the reverse)
 */
export async function openAudit(options: AuditLogOptions): Promise<Audit> {
  const { dir, seen, chains = AUDIT_CHAINS } = options
  const names = chains.map((one) => one.name)
  const place = { dir, ...(seen === undefined ? {} : { seen }) }
  const lost = new Set(await lostChains(place, names).catch((error: unknown) => Promise.reject(auditError(error, dir))))
  const files = new Map<string, Audit>()
  const former = await formerLog(dir)
  await begin(place, { all: names, fresh: names.filter((name) => !lost.has(name)) })
  try {
    for (const chain of chains) {
      const opening = { chains: names, isLost: lost.has(chain.name) }
      files.set(chain.name, await openAuditFile({ ...options, chain, opening }))
    }
  } catch (error) {
    for (const file of files.values()) await file.close()
    throw error
  }
  const audit = new AuditLog(files, chains)
  if (former !== null)
    audit.append({
      kind: 'control',
      code: 'CHAIN_NOTE',
      reason: `a new log was begun here: the one before was put aside as ${former}`
    })
  return audit
}

/** Name of a log that a person set aside, for a log that is still empty; else null. */
async function formerLog(dir: string): Promise<string | null> {
  const former = `${dir}.broken`
  const isThere = await fs.stat(former).then(
    () => true,
    () => false
  )
  const isNew =
    (await segmentFiles({ dir, name: 'audit' })).length === 0 || (await readHead({ dir, name: 'audit' }))?.seq === 0
  return isThere && isNew ? path.basename(former) : null
}

type LogPlace = Pick<AuditLogOptions, 'dir' | 'seen'>

/** Nothing names the chains before all have a head: a start that is cut off must not look like chains taken away. */
async function begin(
  { dir, seen }: LogPlace,
  names: { readonly all: readonly string[]; readonly fresh: readonly string[] }
): Promise<void> {
  try {
    await fs.mkdir(dir, { recursive: true, mode: 0o700 })
    for (const name of names.fresh) if (await isGone({ dir, name })) await writeHead({ dir, name }, FRESH_HEAD)
    const note = `${names.all.join('\n')}\n`
    if (seen !== undefined && (await readIfThere(seen)) !== note) await replaceFile(seen, note)
  } catch (error) {
    throw auditError(error, dir)
  }
}

/**
 * Names of chains of which nothing is there, though others of the log name them in their heads, or the note outside of
 * it does.
 */
export async function lostChains({ dir, seen }: LogPlace, names: readonly string[]): Promise<string[]> {
  const heads = await Promise.all(names.map((name) => readHead({ dir, name })))
  const noted = seen === undefined ? [] : ((await readIfThere(seen)) ?? '').split('\n')
  const named = new Set([...noted, ...heads.flatMap((head) => head?.chains ?? [])])
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

  append(event: AuditEvent, at?: number): void {
    this.#byKind.get(event.kind)?.append(event, at)
  }

  async flush(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.flush()))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.close()))
  }
}
