import type { ApplyHost, ApplyNode } from 'autobase'
import b4a from 'b4a'
import type Hyperbee from 'hyperbee'
import type { BeeBatch } from 'hyperbee'
import { keyFromText, keyToText } from '../../../kit/ids.js'
import type { Verify } from '../../../kit/sign.js'
import { decodeEntry } from '../../../domain/membership/codec.js'
import type { FoldContext, FoldResult } from '../../../domain/membership/fold/effects.js'
import { fold, reads } from '../../../domain/membership/fold/fold.js'
import type { Entry } from '../../../domain/membership/types.js'

/** One call of Autobase's apply. */
export interface ApplyDeps {
  readonly nodes: readonly ApplyNode[]
  readonly view: Hyperbee
  readonly host: ApplyHost
  readonly verify: Verify
}

/**
 * Folds entries into the view. Deterministic and total: a throw in here would close the base on every honest node, so
 * bad entries are skipped.
 */
export async function applyNodes({ nodes, view, host, verify }: ApplyDeps): Promise<void> {
  const batch = view.batch({ update: false })
  for (const { value, from, optimistic } of nodes) {
    const decoded = value === null ? null : decodeEntry(value)
    if (decoded === null || !decoded.ok) continue
    // Of a core that is no writer, only its claim to become one counts.
    if (optimistic && !isClaimOf(decoded.entry, keyToText(from.key))) continue
    const result = fold(await recordsOf(batch, decoded.entry), decoded.entry, {
      verify,
      isBootstrapRelay: b4a.equals(from.key, host.key),
      meshId: keyToText(host.key)
    })
    await perform(result, batch, host)
  }
  await batch.flush()
}

/** The effect of an entry on the view: a dry run, for entries that another node wants appended. */
export async function tryEntry(
  view: Hyperbee,
  entry: Entry,
  context: Omit<FoldContext, 'isBootstrapRelay'>
): Promise<FoldResult> {
  const snapshot = view.snapshot()
  try {
    return fold(await recordsOf(snapshot, entry), entry, { ...context, isBootstrapRelay: false })
  } finally {
    await snapshot.close()
  }
}

function isClaimOf({ body }: Entry, core: string): boolean {
  return body.kind === 'core' && body.coreKey === core
}

async function recordsOf(view: Pick<Hyperbee, 'get'>, entry: Entry): Promise<Map<string, unknown>> {
  const records = new Map<string, unknown>()
  for (const key of reads(entry)) {
    const found = await view.get(key)
    if (found !== null) records.set(key, found.value)
  }
  return records
}

async function perform(
  { puts, addWriters, removeWriters }: FoldResult,
  batch: BeeBatch<string, unknown>,
  host: ApplyHost
): Promise<void> {
  for (const [key, value] of puts) {
    if (value === null) await batch.del(key)
    else await batch.put(key, value)
  }
  for (const core of addWriters) await host.addWriter(keyFromText(core), { indexer: false })
  for (const core of removeWriters) {
    const key = keyFromText(core)
    if (host.removeable(key)) await host.removeWriter(key)
  }
}
