import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { AuditWatch } from '../../../../src/adapters/storage/audit/audit-watch.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

const DAY_MS = 24 * 3_600_000

interface Watched {
  readonly clock: ManualClock
  readonly watch: AuditWatch
  /** Resolves with the next line that is logged. */
  nextLine(): Promise<string>
}

async function logIn(t: Assert, dir: string, clock: ManualClock): Promise<void> {
  const audit = await openAudit({ dir, clock, onError: () => t.fail('the disk works') })
  for (const kind of ['refusal', 'membership'] as const) audit.append({ kind, code: 'one', reason: 'why' })
  await audit.close()
}

function watched(t: Assert, dir: string, clock: ManualClock): Watched {
  let tell: (line: string) => void = () => {}
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: (line) => tell(line) })
  const watch = new AuditWatch({ dir, clock, telemetry })
  watch.check()
  t.teardown(() => watch.close())
  return { clock, watch, nextLine: () => new Promise((resolve) => (tell = resolve)) }
}

async function edit(dir: string, name: string): Promise<void> {
  const file = path.join(dir, name)
  await fs.writeFile(file, (await fs.readFile(file, 'utf8')).replace('why', 'not'))
}

test('a chain that is broken at the start is a problem with the next step', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  await logIn(t, dir, clock)
  await edit(dir, 'changes.ndjson')
  const { watch, nextLine } = watched(t, dir, clock)
  t.ok((await nextLine()).includes('the audit log is broken'))
  t.alike(watch.problems(), [
    {
      code: 'STORE_DAMAGED',
      message: `the audit log is broken: ${path.join(dir, 'changes.ndjson')}:1: line 1 of the chain changes was changed`,
      next: 'a2a-node audit --verify'
    }
  ])
})

test('a chain that somebody breaks while the node runs is found by the check of each day', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  await logIn(t, dir, clock)
  await edit(dir, 'changes.ndjson')
  const { watch, nextLine } = watched(t, dir, clock)
  await nextLine()
  t.is(watch.problems().length, 1, 'the first check is over')
  await edit(dir, 'audit.ndjson')
  clock.advance(DAY_MS)
  await nextLine()
  const messages = watch.problems().map(({ message }) => message)
  t.is(messages.length, 1, 'one problem for all chains')
  t.ok(messages[0]?.endsWith('line 1 of the chain audit was changed; further broken chains: changes'), messages[0])
})

test('no check begins once the node has ended', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  await logIn(t, dir, clock)
  const { watch } = watched(t, dir, clock)
  await watch.close()
  t.is(clock.pending, 0)
  await edit(dir, 'audit.ndjson')
  clock.advance(DAY_MS)
  await watch.close()
  t.alike(watch.problems(), [])
})
