// The time that a test file may take.
import { createHash } from 'node:crypto'
import os from 'node:os'

/** Seconds of one file on an idle machine. Files measure at most half of it. */
export const BUDGET_S = 20

/** Files that need longer, in seconds. */
export const LONGER = {
  // Two homes of one node take each other's links until one of them stops, twice.
  'test/e2e/backup.test.ts': 40,
  // Simulates a crash at every write, with real files.
  'test/adapters/storage/audit/audit-writer.test.ts': 60,
  'test/adapters/storage/ledger/durable-ledger.test.ts': 40,
  // Cuts random updates at every place.
  'test/domain/document/update/cut.test.ts': 50,
  // Two of its tests start, kill and restart three processes.
  'test/e2e/membership.test.ts': 40,
  // Kills processes of five nodes.
  'test/e2e/storm.prove.test.ts': 120,
  // Damages every file of a home, and starts a node on it.
  'test/maintenance/damage.prove.test.ts': 120,
  // Five hundred worlds each.
  'test/simulation/worlds-1.test.ts': 180,
  'test/simulation/worlds-2.prove.test.ts': 180
}

/** CPU milliseconds of `probe` on the machine that the budgets were measured on. */
const REFERENCE_MS = 15
const PROBE_BYTES = 16_000_000

/** How much slower than the reference machine this one is; at least 1. */
export function machineFactor() {
  probe()
  return Math.max(1, Math.min(probe(), probe()) / REFERENCE_MS)
}

function probe() {
  const start = process.cpuUsage()
  createHash('sha256').update(Buffer.alloc(PROBE_BYTES)).digest()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/** Processes that want a core, for each core; at least 1. */
export function loadFactor() {
  return Math.max(1, os.loadavg()[0] / os.availableParallelism())
}

/**
 * Says that a file took longer than its budget, or null. CPU time does not grow under load. Wall time does, and is divided by the load.
 * @param {{ name: string, ms: number, cpuMs: number }} file `name` as `test/kit/ids.test.ts`
 * @param {{ machine: number, load: number, budget?: number }} factors `budget` in seconds, of files without one of their own
 */
export function overBudget({ name, ms, cpuMs }, { machine, load, budget: usual = BUDGET_S }) {
  const budget = LONGER[name] ?? usual
  const seconds = Math.max(cpuMs, ms / load) / machine / 1000
  return seconds <= budget ? null : `took ${seconds.toFixed(1)} s of a budget of ${budget} s: mend it, or see scripts/testing/budget.mjs`
}
