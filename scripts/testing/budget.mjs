// The time that a test file may take.
import { createHash } from 'node:crypto'
import os from 'node:os'

/** Seconds of one file on an idle machine. */
export const BUDGET_S = 20

/** Seconds of one slow proof. */
export const PROOF_BUDGET_S = 180

/** Files that need longer, in seconds: alone on an idle machine they take 21 to 28. */
export const LONGER = {
  'test/adapters/mcp/imported/imported-servers.test.ts': 40,
  'test/cli/timeout-option.test.ts': 40,
  'test/e2e/documents-cli.test.ts': 40,
  'test/e2e/policy.test.ts': 40,
  'test/e2e/start-flags.test.ts': 40
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
 * Says that a file took longer than its budget, or null. Wall time is divided by the load. So is CPU time, by 2 at
 * most: processes that share a core and its caches slow each other down.
 * @param {{ name: string, ms: number, cpuMs: number }} file `name` as `test/kit/ids.test.ts`
 * @param {{ machine: number, load: number, budget?: number }} factors `budget` in seconds, of files without one of
 * their own
 */
export function overBudget({ name, ms, cpuMs }, { machine, load, budget: usual = BUDGET_S }) {
  const budget = LONGER[name] ?? (name.endsWith('.prove.test.ts') ? PROOF_BUDGET_S : usual)
  const seconds = Math.max(cpuMs / Math.min(load, 2), ms / load) / machine / 1000
  return seconds <= budget
    ? null
    : `took ${seconds.toFixed(1)} s of a budget of ${budget} s: mend it, or see scripts/testing/budget.mjs`
}
