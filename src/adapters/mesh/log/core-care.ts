import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import type { NodeStore } from '../../../ports/storage.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { CoreFault } from './guarded-base.js'

/** Name of the stored document of cores of the log that need care. */
export const CORE_CARE = 'log-cores'
/** After this number of starts in a row that ended while the log was read, the next one leaves cores out. */
const FAILED_STARTS = 2
/** Cores that are remembered as set aside. */
const MAX_SET_ASIDE = 64

/** As stored. Keys of cores are z32. */
export interface StoredCare {
  /** Starts in a row whose process ended before the node was up. */
  readonly failed: number
  /** Cores of other nodes whose new blocks the last of these starts read. */
  readonly reading: readonly string[]
  /** Cores of which no new block is read until the next start, which tries them again. */
  readonly leftOut: readonly string[]
  /** Cores that the last start left out and this one tries again. */
  readonly suspects: readonly string[]
  /** Cores that a repair left out for good. */
  readonly removed: readonly string[]
  /** Why no further block of a core is read, as the last start found it. */
  readonly setAside: Readonly<Record<string, CoreFault>>
  /** Owners of these cores, as far as known. */
  readonly owners: Readonly<Record<string, NodeId>>
}

/** For a home whose log has no faults. */
const NO_CARE: StoredCare = { failed: 0, reading: [], leftOut: [], suspects: [], removed: [], setAside: {}, owners: {} }

/** Dependencies of {@link CoreCare}. */
export interface CoreCareDeps {
  readonly documents: NodeStore
  readonly telemetry: Telemetry
  /** The mesh of the home: its first core, which is the owner's. Null for one that founds or joins a mesh now. */
  readonly mesh: { readonly key: string; readonly owner: NodeId } | null
}

/** A home's record of the cores of its log. */
export async function readCare(documents: NodeStore): Promise<StoredCare> {
  return { ...NO_CARE, ...(await documents.read<Partial<StoredCare>>(CORE_CARE)) }
}

/**
 * Leaves out the cores at which starts end. A start counts itself before it reads the log. The count is taken back once
 * the node is up, or when it fails with an error that it can report. After one failed start the next one records the
 * cores of other nodes whose new blocks it reads. After two in a row these are left out: only their blocks that were in
 * the order before are read. The owner's core is left out last, since without it nothing of the log is confirmed. A
 * person may have killed the node both times. So the next start tries them again, and one failure there leaves them out
 * once more. A repair leaves them out for good.
 */
export class CoreCare {
  readonly #documents: NodeStore
  readonly #telemetry: Telemetry
  #stored: StoredCare
  #isUp = false
  #writing: Promise<void> = Promise.resolve()

  private constructor({ documents, telemetry }: CoreCareDeps, stored: StoredCare) {
    this.#documents = documents
    this.#telemetry = telemetry
    this.#stored = stored
  }

  /** Counts this start. @throws NodeError DISK_FULL, NO_PERMISSION, STORE_DAMAGED */
  static async begin(deps: CoreCareDeps): Promise<CoreCare> {
    const before = deps.mesh === null ? NO_CARE : await readCare(deps.documents)
    // Each start finds bad cores anew: one is reported only as long as it is there.
    const care = new CoreCare(deps, { ...atStart(before, deps.mesh), failed: before.failed + 1, setAside: {} })
    await care.#write()
    return care
  }

  /** Cores of which no new block is read. */
  leftOut(): readonly string[] {
    return [...this.#stored.leftOut, ...this.#stored.removed]
  }

  /** May new blocks of a core be read? Puts it on record first where a start failed before. */
  async mayRead(coreKey: string): Promise<boolean> {
    const { failed, reading, suspects } = this.#stored
    if (this.leftOut().includes(coreKey)) return false
    if (this.#isUp || reading.includes(coreKey) || (failed <= 1 && !suspects.includes(coreKey))) return true
    this.#stored = { ...this.#stored, reading: [...reading, coreKey] }
    await this.#write()
    return true
  }

  /** Reads no further block of a core. `owner`: null when it is not known. */
  setAside(coreKey: string, fault: CoreFault, owner: NodeId | null): void {
    const { setAside, owners } = this.#stored
    if (Object.hasOwn(setAside, coreKey) || this.leftOut().includes(coreKey)) return
    if (Object.keys(setAside).length >= MAX_SET_ASIDE) return
    this.#stored = {
      ...this.#stored,
      setAside: { ...setAside, [coreKey]: fault },
      owners: owner === null ? owners : { ...owners, [coreKey]: owner }
    }
    void this.#write().catch((error: unknown) => this.#failed(error))
  }

  /** The node is up. */
  async up({ members }: Pick<MembershipView, 'members'>): Promise<void> {
    this.#isUp = true
    const { owners, setAside, suspects } = this.#stored
    const cores = new Set([...this.leftOut(), ...suspects, ...Object.keys(setAside)])
    const known = Object.entries(owners).filter(([core]) => cores.has(core))
    const found = [...members]
      .filter(([, { coreKey }]) => cores.has(coreKey))
      .map(([nodeId, { coreKey }]) => [coreKey, nodeId] as const)
    this.#stored = { ...this.#stored, failed: 0, reading: [], owners: Object.fromEntries([...known, ...found]) }
    await this.#write()
  }

  /** The start failed with a reported error, or the node stops. */
  async close(): Promise<void> {
    if (!this.#isUp) {
      this.#isUp = true
      this.#stored = { ...this.#stored, failed: this.#stored.failed - 1 }
      await this.#write()
    }
    await this.#writing
  }

  async #write(): Promise<void> {
    const stored = this.#stored
    const writing = this.#writing.catch(() => {}).then(() => this.#documents.write(CORE_CARE, stored))
    this.#writing = writing.catch(() => {})
    await writing
  }

  #failed(error: unknown): void {
    this.#telemetry.log('error', 'that a core of the log is set aside could not be kept', { reason: messageOf(error) })
  }
}

/** The record that a start begins with. */
function atStart(before: StoredCare, mesh: CoreCareDeps['mesh']): StoredCare {
  const { failed, leftOut, reading, suspects } = before
  const isSuspect = failed > 0 && reading.some((core) => suspects.includes(core))
  if (failed >= FAILED_STARTS || isSuspect) return leaveOut(before, mesh)
  return failed === 0 ? { ...before, reading: [], leftOut: [], suspects: leftOut } : { ...before, reading: [] }
}

/** Leaves out the cores at which the last start ended. */
export function leaveOut(care: StoredCare, mesh: CoreCareDeps['mesh']): StoredCare {
  const { failed, leftOut, owners, reading, suspects } = care
  const isOwners = (core: string): boolean => core === mesh?.key || owners[core] === mesh?.owner
  const found = reading.filter((core) => failed > FAILED_STARTS || suspects.includes(core) || !isOwners(core))
  return { ...care, reading: [], leftOut: [...new Set([...leftOut, ...found])] }
}
