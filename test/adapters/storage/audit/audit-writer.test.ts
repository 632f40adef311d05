import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { brokenText, verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { CHAINS, codes, codesOf, isWhole, live, newHome } from '../../../support/audit-home.js'

test('a chain without its head says so with the place, before the next start and after it', async (t) => {
  const home = await newHome(t)
  await live(home, ['one'])
  await fs.rm(path.join(home.dir, 'approvals.head'))
  const file = path.join(home.dir, 'approvals.ndjson')
  const texts = async (): Promise<string[]> => (await verifyAudit(home.dir, { seen: home.seen })).broken.map(brokenText)
  const text = `${file}:2: approvals.head, the head of this chain, was gone or unreadable: whether line 2 of the chain approvals and later ones are missing cannot be told`
  t.alike(await texts(), [text])
  await live(home, ['two'])
  t.alike(await texts(), [text])
  t.alike(await codesOf(home), ['one', 'CHAIN_NOTE', 'two'])
  await fs.writeFile(file, '')
  await fs.rm(path.join(home.dir, 'approvals.head'))
  await live(home, ['three'])
  t.alike(await texts(), [
    `${file}:1: line 1 of the chain approvals belongs here: it is missing, or this line or the one before was changed`
  ])
})

test('a last line that was written anew, with a hash that fits, stays broken after the next start', async (t) => {
  const home = await newHome(t)
  await live(home, ['one'])
  const other = await newHome(t)
  await live(other, ['another'])
  await fs.copyFile(path.join(other.dir, 'approvals.ndjson'), path.join(home.dir, 'approvals.ndjson'))
  t.is(await isWhole(home), false)
  await live(home, ['two'])
  t.is(await isWhole(home), false)
})

test('a break is not forgotten when the file that it is in is removed for its age', async (t) => {
  for (const breaks of [
    async (file: string, head: string): Promise<void> => {
      await fs.rm(head)
      await fs.writeFile(file, '')
    },
    async (file: string): Promise<void> =>
      fs.writeFile(file, (await fs.readFile(file, 'utf8')).replace('"c0"', '"x0"')),
    async (file: string): Promise<void> => fs.writeFile(file, '')
  ]) {
    const home = await newHome(t)
    await live(home, ['c0', 'c1'])
    await breaks(path.join(home.dir, 'approvals.ndjson'), path.join(home.dir, 'approvals.head'))
    await live(home, codes(20, 10))
    t.absent((await codesOf(home)).includes('c10'), 'it is removed')
    const { broken } = await verifyAudit(home.dir, { seen: home.seen })
    t.alike(
      broken.map(({ chain, line }) => [chain, line]),
      [['approvals', 1]]
    )
  }
})

test('a new file that cannot be made durable at first pushes out none that is not old', async (t) => {
  const { open } = fs
  t.teardown(() => Object.assign(fs, { open }))
  for (const failures of [1, 4]) {
    const home = await newHome(t)
    const audit = await openAudit({ ...home, clock: new ManualClock(), onError: () => {}, chains: CHAINS })
    const write = async (all: readonly string[]): Promise<void> => {
      for (const code of all) {
        audit.append({ kind: 'approval', code })
        for (let tries = 0; tries < 6; tries++) await audit.flush().catch(() => {})
      }
    }
    await write(codes(8))
    let left = failures
    let isNew = false
    const failing = async (file: string, ...rest: never[]): Promise<FileHandle> => {
      const isFailing = isNew && file === home.dir && left > 0
      isNew = file === path.join(home.dir, 'approvals.ndjson')
      if (!isFailing) return await open(file, ...rest)
      left--
      throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
    }
    Object.assign(fs, { open: failing })
    await write(codes(8, 8))
    await audit.close()
    Object.assign(fs, { open })
    t.is(left, 0, 'it failed as often as it should')
    t.ok(await isWhole(home))
    const kept = await codesOf(home)
    t.alike(kept, codes(16).slice(16 - kept.length))
    t.ok(kept.length >= 4, `${kept.length} lines are kept`)
  }
})

test('a log that a person began anew says in its first line that there was another', async (t) => {
  const home = await newHome(t)
  await live(home, ['one'])
  await fs.rename(home.dir, `${home.dir}.broken`)
  await fs.rm(home.seen)
  await live(home, ['two'])
  await live(home, ['three'])
  const text = await fs.readFile(path.join(home.dir, 'audit.ndjson'), 'utf8')
  t.ok(
    text.includes(
      '"code":"CHAIN_NOTE","reason":"a new log was begun here: the one before was put aside as audit.broken"'
    ),
    text
  )
  t.is(text.split('\n').length, 2, 'once')
  t.ok(await isWhole(home))
})
