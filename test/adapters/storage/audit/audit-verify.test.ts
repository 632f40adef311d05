import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import type { AuditChain } from '../../../../src/adapters/storage/audit/audit-chains.js'
import {
  type AuditEntry,
  type AuditLine,
  lineText,
  nextLine,
  parseLine
} from '../../../../src/adapters/storage/audit/audit-line.js'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { brokenText, verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import type { AuditCheck, BrokenChain } from '../../../../src/adapters/storage/audit/audit-verify.js'
import type { Audit } from '../../../../src/ports/audit.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

const LINES: Readonly<Record<string, number>> = { audit: 12, exchanges: 7, changes: 9, approvals: 2 }
const TOTAL = 30

/** The chains as they ship, with files so small that lines fill several. */
function small(chain: AuditChain): AuditChain {
  return { ...chain, maxBytes: 800, keepFiles: 4 }
}

interface Log {
  readonly dir: string
  readonly files: ReadonlyMap<string, string>
  /** Files that are not as they were. */
  readonly damaged: Set<string>
}

async function open(t: Assert, dir: string, chains: readonly AuditChain[]): Promise<Audit> {
  return await openAudit({ dir, clock: new ManualClock(), onError: () => t.fail('the disk works'), chains })
}

/** A log of thirty lines in four chains, and a way to put it back after damage. */
async function intact(t: Assert): Promise<Log> {
  const dir = await tempDir(t)
  const audit = await open(t, dir, AUDIT_CHAINS.map(small))
  for (const { name, kinds } of AUDIT_CHAINS) {
    for (let i = 0; i < (LINES[name] ?? 0); i++) {
      audit.append({
        kind: kinds[0] ?? 'control',
        code: 'TIER_VIOLATION',
        peer: `p${i}`,
        reason: 'why',
        sender: `a@p${i}`
      })
      await audit.flush()
    }
  }
  await audit.close()
  const files = new Map<string, string>()
  for (const name of await fs.readdir(dir)) files.set(name, await fs.readFile(path.join(dir, name), 'utf8'))
  return { dir, files, damaged: new Set() }
}

async function restore({ dir, files, damaged }: Log): Promise<void> {
  for (const name of damaged) await fs.writeFile(path.join(dir, name), files.get(name) ?? '')
  damaged.clear()
}

async function damage(log: Log, name: string, text: string | null): Promise<void> {
  log.damaged.add(name)
  const file = path.join(log.dir, name)
  if (text === null) await fs.rm(file)
  else await fs.writeFile(file, text)
}

/** Files of a chain, oldest first. */
function filesOf({ files }: Log, chain: string): string[] {
  return [`${chain}.3.ndjson`, `${chain}.2.ndjson`, `${chain}.1.ndjson`, `${chain}.ndjson`].filter((name) =>
    files.has(name)
  )
}

/** Writes all lines of a chain again, in the files they were in, after `change` has had its way with them. */
async function withLines(log: Log, chain: string, change: (lines: string[]) => string[]): Promise<void> {
  await restore(log)
  const names = filesOf(log, chain)
  const linesIn = (name: string): string[] => (log.files.get(name) ?? '').split('\n').slice(0, -1)
  const changed = change(names.flatMap(linesIn))
  let at = 0
  for (const [index, name] of names.entries()) {
    const end = index === names.length - 1 ? changed.length : at + linesIn(name).length
    const text = changed.slice(at, end).map((line) => `${line}\n`)
    if (text.join('') !== log.files.get(name)) await damage(log, name, text.join(''))
    at = end
  }
}

/** A chain and a number below that of its lines. */
const arbLine = fc
  .constantFrom(...Object.entries(LINES))
  .chain(([chain, count]) =>
    fc.record({ chain: fc.constant(chain), which: fc.nat(count - 1), other: fc.nat(count - 1) })
  )

/** Does this line of this chain not hold, and nothing else? */
function isBroken({ broken }: AuditCheck, chain: string, line: number): boolean {
  return broken.length === 1 && broken[0]?.chain === chain && broken[0].line === line
}

/** Number of the oldest line that must be there. */
function lineOfOldest(log: Log): number {
  return (JSON.parse(log.files.get('audit.head') ?? '') as { first: { seq: number } }).first.seq
}

/** Where a line that was changed stands: the file and the line in it, as an editor counts. */
function brokenIn(log: Log, chain: string, line: number): BrokenChain {
  const lineIn = (name: string): number =>
    (log.files.get(name) ?? '').split('\n').findIndex((text) => text.includes(`"seq":${line},`)) + 1
  const name = filesOf(log, chain).find((one) => lineIn(one) > 0) ?? ''
  return { chain, line, fault: 'changed', file: path.join(log.dir, name), fileLine: lineIn(name) }
}

test('a log that nobody touched holds, and so does none at all', async (t) => {
  const { dir, files } = await intact(t)
  t.ok(files.has('audit.2.ndjson') && files.has('changes.1.ndjson'), 'the lines are in more than one file')
  t.alike(await verifyAudit(dir), { ok: true, entries: TOTAL, broken: [] })
  t.alike(await verifyAudit(path.join(dir, 'none')), { ok: true, entries: 0, broken: [] })
})

test('any change of a character in any line is found, and which line it was', { timeout: 180_000 }, async (t) => {
  const log = await intact(t)
  const property = fc.asyncProperty(
    arbLine,
    fc.nat(200),
    fc.integer({ min: 33, max: 126 }),
    async ({ chain, which }, at, code) => {
      let isSame = false
      await withLines(log, chain, (lines) =>
        lines.map((line, index) => {
          if (index !== which) return line
          const place = at % line.length
          const changed = line.slice(0, place) + String.fromCharCode(code) + line.slice(place + 1)
          isSame = changed === line
          return changed
        })
      )
      const check = await verifyAudit(log.dir)
      const entries = TOTAL - (LINES[chain] ?? 0) + which
      return isSame ? check.ok : !check.ok && isBroken(check, chain, which + 1) && check.entries === entries
    }
  )
  await holds(t, property, 100)
})

test('a line that says the same in another way is found', async (t) => {
  const log = await intact(t)
  for (const disguise of [
    (line: string) => line.replace('{', '{ '),
    (line: string) => line.replace('{', '{"seq":99,'),
    (line: string) => line.replace('"why"', '"wh\\u0079"'),
    (line: string) => `${line} `
  ]) {
    await withLines(log, 'audit', (lines) => lines.map((line, index) => (index === 4 ? disguise(line) : line)))
    t.alike(await verifyAudit(log.dir), { ok: false, entries: 22, broken: [brokenIn(log, 'audit', 5)] })
  }
})

test('removed lines are found, wherever they stood', { timeout: 180_000 }, async (t) => {
  const log = await intact(t)
  const property = fc.asyncProperty(arbLine, fc.integer({ min: 1, max: 12 }), async ({ chain, which }, count) => {
    await withLines(log, chain, (lines) => [...lines.slice(0, which), ...lines.slice(which + count)])
    const check = await verifyAudit(log.dir)
    return !check.ok && isBroken(check, chain, which + 1)
  })
  await holds(t, property, 100)
})

test('a line that was changed and sealed anew is found by the line after it', async (t) => {
  const log = await intact(t)
  for (const [chain, count] of Object.entries(LINES)) {
    for (let which = 0; which < count - 1; which++) {
      await withLines(log, chain, (lines) =>
        lines.map((text, index) => {
          const line = parseLine(text)
          if (line === null || index !== which) return text
          return lineText(nextLine({ ...entryOf(line), reason: 'forged' }, { seq: line.seq - 1, hash: line.prev }))
        })
      )
      const check = await verifyAudit(log.dir)
      t.ok(!check.ok && check.broken.length === 1 && check.broken[0]?.chain === chain, `${chain} ${which}`)
    }
  }
})

/** An entry without its place in a chain. */
function entryOf({ seq: _seq, prev: _prev, hash: _hash, ...entry }: AuditLine): AuditEntry {
  return entry
}

test('lines in another order, or twice, are found', { timeout: 180_000 }, async (t) => {
  const log = await intact(t)
  const property = fc.asyncProperty(arbLine, fc.boolean(), async ({ chain, which, other }, isCopy) => {
    let isSame = false
    await withLines(log, chain, (lines) => {
      const changed = [...lines]
      const [line = ''] = isCopy ? [changed[which]] : changed.splice(which, 1)
      changed.splice(other, 0, line)
      isSame = changed.join() === lines.join()
      return changed
    })
    return isSame || !(await verifyAudit(log.dir)).ok
  })
  await holds(t, property, 100)
})

test('a file cut anywhere is found', { timeout: 180_000 }, async (t) => {
  const log = await intact(t)
  const names = [...log.files.keys()].filter((name) => (log.files.get(name) ?? '') !== '')
  const property = fc.asyncProperty(fc.constantFrom(...names), fc.nat(), async (name, at) => {
    await restore(log)
    const text = log.files.get(name) ?? ''
    // A head that only lost its newline says all the same.
    await damage(log, name, text.slice(0, at % (text.length - (name.endsWith('.head') ? 1 : 0))))
    return !(await verifyAudit(log.dir)).ok
  })
  await holds(t, property, 100)
})

test('every broken chain is named, with the first line that does not hold', async (t) => {
  const log = await intact(t)
  for (const [chain, line] of [
    ['audit', 5],
    ['approvals', 2]
  ] as const) {
    const file = filesOf(log, chain).find((name) => (log.files.get(name) ?? '').includes(`"seq":${line},`)) ?? ''
    await damage(log, file, (log.files.get(file) ?? '').replace(new RegExp(`("seq":${line},.*?)"why"`), '$1"not"'))
  }
  const broken = [brokenIn(log, 'audit', 5), brokenIn(log, 'approvals', 2)]
  t.alike(await verifyAudit(log.dir), { ok: false, entries: 4 + 7 + 9 + 1, broken })
})

test('a fault is reported with the line of the file as an editor counts, also where its chain began in an older one', async (t) => {
  const log = await intact(t)
  const names = filesOf(log, 'audit')
  const last = names.at(-1) ?? ''
  const lines = (log.files.get(last) ?? '').split('\n').slice(0, -1)
  const [first, rest] = [LINES['audit'] ?? 0, lines.length]
  t.ok(names.length > 2 && rest > 1)
  const file = path.join(log.dir, last)
  for (const [kept, text] of [
    [[...lines.slice(0, -1), 'x'], `${file}:${rest}: line ${first} of the chain audit was changed`],
    [lines.slice(0, -1), `${file} ends after ${rest - 1} lines: line ${first} of the chain audit is missing`],
    [
      [...lines.slice(0, -2), ...lines.slice(-1)],
      `${file}:${rest - 1}: line ${first - 1} of the chain audit belongs here: it is missing, or this line or the one before was changed`
    ]
  ] as const) {
    await damage(log, last, kept.map((line) => `${line}\n`).join(''))
    t.alike((await verifyAudit(log.dir)).broken.map(brokenText), [text])
  }
  for (const name of names) await fs.rm(path.join(log.dir, name))
  t.alike((await verifyAudit(log.dir)).broken.map(brokenText), [
    `line ${lineOfOldest(log)} of the chain audit is missing`
  ])
})

test('a log that is gone altogether is missed by the note outside of it, and stays so after the next start', async (t) => {
  const home = await tempDir(t)
  const [dir, seen] = [path.join(home, 'audit'), path.join(home, 'audit.seen')]
  const start = async (): Promise<void> => {
    const audit = await openAudit({ dir, seen, clock: new ManualClock(), onError: () => t.fail('the disk works') })
    audit.append({ kind: 'membership', code: 'revoked' })
    await audit.close()
  }
  t.is((await verifyAudit(dir, { seen })).ok, true, 'there never was one')
  await start()
  t.is((await verifyAudit(dir, { seen })).ok, true)
  await fs.rm(dir, { recursive: true })
  const names = AUDIT_CHAINS.map((one) => one.name)
  const { broken } = await verifyAudit(dir, { seen })
  t.alike(
    broken.map(brokenText),
    names.map((name) => `nothing is left of the chain ${name}`)
  )
  t.is((await verifyAudit(dir)).ok, true, 'nothing else would report it')
  await start()
  t.alike(
    (await verifyAudit(dir, { seen })).broken.map(({ chain, line }) => [chain, line]),
    names.map((name) => [name, 1])
  )
  await Promise.all([fs.rm(dir, { recursive: true }), fs.rm(seen)])
  await start()
  t.is((await verifyAudit(dir, { seen })).ok, true, 'a person may begin a new one')
})

test('lines of one chain do not pass in another', async (t) => {
  const log = await intact(t)
  const foreign = (log.files.get('changes.ndjson') ?? '').split('\n')[0] ?? ''
  await withLines(log, 'audit', (lines) => [...lines.slice(0, -1), foreign])
  t.is((await verifyAudit(log.dir)).ok, false)
})

test('a whole file that is gone is found: the oldest, the newest, one between, in any chain', async (t) => {
  const log = await intact(t)
  for (const name of log.files.keys()) {
    await restore(log)
    await damage(log, name, null)
    t.is((await verifyAudit(log.dir)).ok, false, name)
  }
})

test('a whole chain that is gone is found, and stays missing after the next start', async (t) => {
  const log = await intact(t)
  for (const chain of Object.keys(LINES)) {
    for (const name of log.files.keys()) log.damaged.add(name)
    await restore(log)
    for (const name of [...filesOf(log, chain), `${chain}.head`]) await fs.rm(path.join(log.dir, name))
    const entries = TOTAL - (LINES[chain] ?? 0)
    const gone = { chain, line: 1, fault: 'gone', file: null, fileLine: null }
    t.alike(await verifyAudit(log.dir), { ok: false, entries, broken: [gone] })
    const audit = await open(t, log.dir, AUDIT_CHAINS.map(small))
    await audit.close()
    const replaced = { chain, line: 1, fault: 'misplaced', file: path.join(log.dir, `${chain}.ndjson`), fileLine: 1 }
    t.alike(await verifyAudit(log.dir), { ok: false, entries, broken: [replaced] })
    await fs.rm(log.dir, { recursive: true })
    await fs.mkdir(log.dir)
  }
})

test('a first start that was cut off at any moment, and a log of one chain by an older version, hold', async (t) => {
  const dir = await tempDir(t)
  const fresh = { seq: 0, hash: '0'.repeat(64), first: { seq: 1, prev: '0'.repeat(64) } }
  await fs.writeFile(path.join(dir, 'audit.head'), JSON.stringify(fresh))
  await fs.writeFile(path.join(dir, 'audit.ndjson'), '')
  t.is((await verifyAudit(dir)).ok, true)
  const audit = await open(t, dir, AUDIT_CHAINS)
  audit.append({ kind: 'membership', code: 'revoked' })
  await audit.close()
  t.alike(await verifyAudit(dir), { ok: true, entries: 1, broken: [] })
})

test('a missing or unreadable head is found', async (t) => {
  const log = await intact(t)
  for (const text of [null, '', '{}', '{"seq":12}', 'null']) {
    await restore(log)
    await damage(log, 'audit.head', text)
    t.is((await verifyAudit(log.dir)).ok, false, String(text))
  }
})

test('a line that a running node is about to finish is not taken for damage', async (t) => {
  const { dir } = await intact(t)
  await fs.appendFile(path.join(dir, 'audit.ndjson'), '{"seq":13,"a')
  t.alike(await verifyAudit(dir), { ok: true, entries: TOTAL, broken: [] })
})

test('a log holds at every moment while it is written and its files are changed', { timeout: 180_000 }, async (t) => {
  const dir = await tempDir(t)
  const chains = AUDIT_CHAINS.map((chain) => ({ ...chain, maxBytes: 1500, keepFiles: 3 }))
  const audit = await open(t, dir, chains)
  t.teardown(() => audit.close())
  let isWriting = true
  const writing = (async () => {
    for (let i = 0; i < 150; i++) {
      audit.append({ kind: 'control', code: `c${i}` })
      audit.append({ kind: 'membership', code: `m${i}` })
      await audit.flush()
    }
    isWriting = false
  })()
  let checks = 0
  let broken = 0
  while (isWriting) {
    if (!(await verifyAudit(dir)).ok) broken++
    checks++
  }
  await writing
  t.is(broken, 0, `${checks} checks`)
})
