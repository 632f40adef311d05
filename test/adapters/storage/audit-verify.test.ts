import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { openAuditFile } from '../../../src/adapters/storage/audit-file.js'
import { verifyAudit } from '../../../src/adapters/storage/audit-verify.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'
import { tempDir } from '../../support/tmp.js'

const LINES = 12

/** A log of twelve lines in three files, and a way to put it back after damage. */
async function intact(t: Assert): Promise<{ dir: string; files: ReadonlyMap<string, string> }> {
  const dir = await tempDir(t)
  const audit = await openAuditFile({ dir, clock: new ManualClock(), onError: () => t.fail('the disk works'), maxBytes: 800, keepFiles: 4 })
  for (let i = 0; i < LINES; i++) {
    audit.append({ kind: 'refusal', code: 'TIER_VIOLATION', peer: `p${i}`, reason: 'why', sender: `a@p${i}` })
    await audit.flush()
  }
  await audit.close()
  const files = new Map<string, string>()
  for (const name of await fs.readdir(dir)) files.set(name, await fs.readFile(path.join(dir, name), 'utf8'))
  return { dir, files }
}

const ORDER = ['audit.3.ndjson', 'audit.2.ndjson', 'audit.1.ndjson', 'audit.ndjson']

/** Writes all lines again, in the files they were in, after `change` has had its way with them. */
async function withLines(dir: string, files: ReadonlyMap<string, string>, change: (lines: string[]) => string[]): Promise<void> {
  const names = ORDER.filter((name) => files.has(name))
  const lines = names.flatMap((name) => (files.get(name) ?? '').split('\n').slice(0, -1))
  const changed = change(lines)
  const sizes = names.map((name) => (files.get(name) ?? '').split('\n').length - 1)
  let at = 0
  for (const [index, name] of names.entries()) {
    const end = index === names.length - 1 ? changed.length : at + (sizes[index] ?? 0)
    await fs.writeFile(
      path.join(dir, name),
      changed
        .slice(at, end)
        .map((line) => `${line}\n`)
        .join('')
    )
    at = end
  }
}

test('a log that nobody touched holds, and so does none at all', async (t) => {
  const { dir, files } = await intact(t)
  t.ok(files.size > 2, 'the lines are in more than one file')
  t.alike(await verifyAudit(dir), { ok: true, entries: LINES, brokenAt: null })
  t.alike(await verifyAudit(path.join(dir, 'none')), { ok: true, entries: 0, brokenAt: null })
})

test('any change of a character in any line is found, and which line it was', async (t) => {
  const { dir, files } = await intact(t)
  const property = fc.asyncProperty(fc.nat(LINES - 1), fc.nat(200), fc.integer({ min: 33, max: 126 }), async (which, at, code) => {
    let isSame = false
    await withLines(dir, files, (lines) =>
      lines.map((line, index) => {
        if (index !== which) return line
        const place = at % line.length
        const changed = line.slice(0, place) + String.fromCharCode(code) + line.slice(place + 1)
        isSame = changed === line
        return changed
      })
    )
    const check = await verifyAudit(dir)
    return isSame ? check.ok : !check.ok && check.brokenAt === which + 1 && check.entries === which
  })
  await holds(t, property)
})

test('a line that says the same in another way is found', async (t) => {
  const { dir, files } = await intact(t)
  for (const disguise of [
    (line: string) => line.replace('{', '{ '),
    (line: string) => line.replace('{', '{"seq":99,'),
    (line: string) => line.replace('"why"', '"wh\\u0079"'),
    (line: string) => `${line} `
  ]) {
    await withLines(dir, files, (lines) => lines.map((line, index) => (index === 4 ? disguise(line) : line)))
    t.alike(await verifyAudit(dir), { ok: false, entries: 4, brokenAt: 5 })
  }
})

test('removed lines are found, wherever they stood', async (t) => {
  const { dir, files } = await intact(t)
  const property = fc.asyncProperty(fc.nat(LINES - 1), fc.integer({ min: 1, max: LINES }), async (from, count) => {
    await withLines(dir, files, (lines) => [...lines.slice(0, from), ...lines.slice(from + count)])
    const check = await verifyAudit(dir)
    return !check.ok && check.brokenAt === from + 1
  })
  await holds(t, property)
})

test('lines in another order, or twice, are found', async (t) => {
  const { dir, files } = await intact(t)
  const property = fc.asyncProperty(fc.nat(LINES - 1), fc.nat(LINES - 1), fc.boolean(), async (from, to, isCopy) => {
    let isSame = false
    await withLines(dir, files, (lines) => {
      const changed = [...lines]
      const [line = ''] = isCopy ? [changed[from]] : changed.splice(from, 1)
      changed.splice(to, 0, line)
      isSame = changed.join() === lines.join()
      return changed
    })
    return isSame || !(await verifyAudit(dir)).ok
  })
  await holds(t, property)
})

test('a file cut anywhere is found', async (t) => {
  const { dir, files } = await intact(t)
  const property = fc.asyncProperty(fc.constantFrom(...ORDER.filter((name) => files.has(name))), fc.nat(), async (name, at) => {
    for (const [one, text] of files) await fs.writeFile(path.join(dir, one), text)
    const text = files.get(name) ?? ''
    await fs.writeFile(path.join(dir, name), text.slice(0, at % text.length))
    return !(await verifyAudit(dir)).ok
  })
  await holds(t, property)
})

test('a whole file that is gone is found: the oldest, the newest, one between', async (t) => {
  const { dir, files } = await intact(t)
  for (const name of ORDER.filter((one) => files.has(one))) {
    for (const [one, text] of files) await fs.writeFile(path.join(dir, one), text)
    await fs.rm(path.join(dir, name))
    t.is((await verifyAudit(dir)).ok, false, name)
  }
})

test('a missing or unreadable head is found', async (t) => {
  const { dir } = await intact(t)
  for (const text of [null, '', '{}', '{"seq":12}', 'null']) {
    if (text === null) await fs.rm(path.join(dir, 'audit.head'))
    else await fs.writeFile(path.join(dir, 'audit.head'), text)
    t.is((await verifyAudit(dir)).ok, false, String(text))
  }
})

test('a line that a running node is about to finish is not taken for damage', async (t) => {
  const { dir } = await intact(t)
  await fs.appendFile(path.join(dir, 'audit.ndjson'), '{"seq":13,"a')
  t.alike(await verifyAudit(dir), { ok: true, entries: LINES, brokenAt: null })
})

test('a log holds at every moment while it is written and its files are changed', async (t) => {
  const dir = await tempDir(t)
  const audit = await openAuditFile({
    dir,
    clock: new ManualClock(),
    onError: () => t.fail('the disk works'),
    maxBytes: 1500,
    keepFiles: 3
  })
  t.teardown(() => audit.close())
  let isWriting = true
  const writing = (async () => {
    for (let i = 0; i < 150; i++) {
      audit.append({ kind: 'control', code: `c${i}` })
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
