import os from 'node:os'
import type { NodeStore } from '../../../ports/storage.js'
import type { PeerClock } from '../../../domain/membership/clock-skew.js'

/** Name of the document with the last skew of the clock. */
const CLOCK = 'clock-skew'
/** The time of the last boot, by the clock, may move by this without a change of the clock, in milliseconds. */
const STEADY_MS = 30_000

interface StoredSkew extends PeerClock {
  /** Unix milliseconds of the boot of the machine, by the clock at the measurement. */
  readonly bootedAt: number
}

/**
 * Records skews for `doctor`, which may run while no node does; null removes the record. Calls take effect in their
 * order: the last one holds. `now`: unix milliseconds.
 */
export function skewRecorder(documents: NodeStore): (skew: PeerClock | null, now: number) => Promise<void> {
  // One of an earlier run may be there.
  let isRecorded = true
  return async (skew, now) => {
    if (skew === null && !isRecorded) return
    isRecorded = skew !== null
    if (skew === null) await documents.remove(CLOCK)
    else await documents.write(CLOCK, { ...skew, bootedAt: bootedAt(now) } satisfies StoredSkew)
  }
}

/** The recorded skew; null for none, and when the clock was set or the machine booted since. Never rejects. */
export async function recordedSkew(documents: NodeStore, now: number): Promise<PeerClock | null> {
  const stored = await documents.read<StoredSkew>(CLOCK).catch(() => null)
  return stored !== null && Math.abs(bootedAt(now) - stored.bootedAt) < STEADY_MS ? stored : null
}

function bootedAt(now: number): number {
  return now - os.uptime() * 1000
}
