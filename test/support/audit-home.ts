import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import { AUDIT_CHAINS } from '../../src/adapters/storage/audit/audit-chains.js'
import { openAudit } from '../../src/adapters/storage/audit/audit-log.js'
import { verifyAudit } from '../../src/adapters/storage/audit/audit-verify.js'
import type { AuditEvent } from '../../src/ports/audit.js'
import { ManualClock } from './manual-clock.js'
import { tempDir } from './tmp.js'

/** The chains as they ship, with files so small that a few lines fill one. */
export const CHAINS = AUDIT_CHAINS.map((chain) => ({ ...chain, maxBytes: 600, keepFiles: 3 }))

interface Home {
  readonly dir: string
  readonly seen: string
}

/** An empty home, removed when the test ends. */
export async function newHome(t: Assert): Promise<Home> {
  const home = await tempDir(t)
  return { dir: path.join(home, 'audit'), seen: path.join(home, 'audit.seen') }
}

/**
 * One life of a node: it opens the log, writes lines one after the other and closes it. Resolves with the codes that
 * were on disk.
 */
export async function live(
  home: Home,
  codes: readonly string[],
  kind: AuditEvent['kind'] = 'approval'
): Promise<string[]> {
  const written: string[] = []
  const audit = await openAudit({ ...home, clock: new ManualClock(), onError: () => {}, chains: CHAINS }).catch(
    () => null
  )
  for (const code of audit === null ? [] : codes) {
    audit?.append({ kind, code })
    await audit?.flush().then(
      () => written.push(code),
      () => {}
    )
  }
  await audit?.close()
  return written
}

/** Does the log of a home verify? */
export async function isWhole({ dir, seen }: Home): Promise<boolean> {
  return (await verifyAudit(dir, { seen })).ok
}

/** The codes of the approvals in a home, oldest first. */
export async function codesOf({ dir }: Home): Promise<string[]> {
  const names = ['approvals.2.ndjson', 'approvals.1.ndjson', 'approvals.ndjson']
  const texts = await Promise.all(names.map((name) => fs.readFile(path.join(dir, name), 'utf8').catch(() => '')))
  return [...texts.join('').matchAll(/"code":"([^"]*)"/g)].map(([, code = '']) => code)
}

/** Codes to write: `c<from>`, `c<from + 1>` and so on. */
export const codes = (count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `c${from + i}`)
