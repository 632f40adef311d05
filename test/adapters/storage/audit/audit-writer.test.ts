import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import fc from 'fast-check'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { brokenText, verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import type { AuditEvent } from '../../../../src/ports/audit.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

/** The chains as they ship, with files so small that a few lines fill one. */
const CHAINS = AUDIT_CHAINS.map((chain) => ({ ...chain, maxBytes: 600, keepFiles: 3 }))

interface Home {
  readonly dir: string
  readonly seen: string
}

async function newHome(t: Assert): Promise<Home> {
  const home = await tempDir(t)
  return { dir: path.join(home, 'audit'), seen: path.join(home, 'audit.seen') }
}

/** One life of a node: it opens the log, writes lines one after the other and closes it. Resolves with the codes that were on disk. */
async function live(home: Home, codes: readonly string[], kind: AuditEvent['kind'] = 'approval'): Promise<string[]> {
  const written: string[] = []
  const audit = await openAudit({ ...home, clock: new ManualClock(), onError: () => {}, chains: CHAINS }).catch(() => null)
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

async function isWhole({ dir, seen }: Home): Promise<boolean> {
  return (await verifyAudit(dir, { seen })).ok
}

async function codesOf({ dir }: Home): Promise<string[]> {
  const names = ['approvals.2.ndjson', 'approvals.1.ndjson', 'approvals.ndjson']
  const texts = await Promise.all(names.map((name) => fs.readFile(path.join(dir, name), 'utf8').catch(() => '')))
  return [...texts.join('').matchAll(/"code":"([^"]*)"/g)].map(([, code = '']) => code)
}

const codes = (count: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `c${from + i}`)

/** What somebody may do to a chain: cut its files, and take its head away or make it unreadable. */
const arbDamage = fc.record({
  chain: fc.constantFrom('approvals', 'audit'),
  lines: fc.integer({ min: 1, max: 12 }),
  /** Lines left in the newest file; null: as it was. */
  left: fc.option(fc.nat(1)),
  head: fc.constantFrom(null, '', '{}', 'null', '{"seq":1}')
})

test('a chain whose head was taken away or made unreadable stays broken over every start, and goes on', { timeout: 180_000 }, async (t) => {
  const property = fc.asyncProperty(arbDamage, fc.integer({ min: 1, max: 3 }), async ({ chain, lines, left, head }, starts) => {
    const home = await newHome(t)
    const kind = chain === 'audit' ? 'control' : 'approval'
    await live(home, codes(lines), kind)
    const [file, headFile] = [path.join(home.dir, `${chain}.ndjson`), path.join(home.dir, `${chain}.head`)]
    const text = await fs.readFile(file, 'utf8')
    if (left !== null) await fs.writeFile(file, text.split('\n').slice(0, left).join('\n') + (left > 0 ? '\n' : ''))
    if (head === null) await fs.rm(headFile)
    else await fs.writeFile(headFile, head)
    const isTold = async (): Promise<boolean> => {
      const { broken } = await verifyAudit(home.dir, { seen: home.seen })
      return broken.length === 1 && broken[0]?.chain === chain
    }
    let wasTold = await isTold()
    for (let start = 0; start < starts; start++) {
      const written = await live(home, codes(3, 100 * start), kind)
      wasTold &&= written.length === 3 && (await isTold())
    }
    return wasTold
  })
  await holds(t, property, 100)
})

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
    async (file: string): Promise<void> => fs.writeFile(file, (await fs.readFile(file, 'utf8')).replace('"c0"', '"x0"')),
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
  t.ok(text.includes('"code":"CHAIN_NOTE","reason":"a new log was begun here: the one before was put aside as audit.broken"'), text)
  t.is(text.split('\n').length, 2, 'once')
  t.ok(await isWhole(home))
})

type Write = (bytes: Uint8Array, offset: number, length: number, position: number) => Promise<unknown>

/** Lets so many changes of files happen, then none: the last one half, where that may be. Undone by what it returns. */
function crashAfter(changes: number): () => void {
  let left = changes
  const real = { open: fs.open, rename: fs.rename, rm: fs.rm, mkdir: fs.mkdir }
  const dead = (): Error => Object.assign(new Error('the power is gone'), { code: 'EIO' })
  const guarded = <T>(run: () => Promise<T>, half?: () => Promise<unknown>): Promise<T> => {
    if (left-- > 0) return run()
    if (left === -1 && half !== undefined) return half().then(() => Promise.reject(dead()))
    return Promise.reject(dead())
  }
  const wrap = (handle: FileHandle): FileHandle => {
    const { writeFile, truncate, sync, datasync } = handle
    const write: Write = handle.write.bind(handle)
    return Object.assign(handle, {
      write: (bytes: Uint8Array, offset: number, length: number, position: number) =>
        guarded(
          () => write(bytes, offset, length, position),
          () => write(bytes, offset, Math.floor(length / 2), position)
        ),
      writeFile: (text: string) =>
        guarded(
          () => writeFile.call(handle, text),
          () => writeFile.call(handle, text.slice(0, text.length / 2))
        ),
      truncate: (size: number) => guarded(() => truncate.call(handle, size)),
      sync: () => guarded(() => sync.call(handle)),
      datasync: () => guarded(() => datasync.call(handle))
    })
  }
  Object.assign(fs, {
    open: (...args: Parameters<typeof fs.open>) =>
      args[1] === 'r' || args[1] === undefined ? real.open(...args) : guarded(async () => wrap(await real.open(...args))),
    rename: (...args: Parameters<typeof fs.rename>) => guarded(() => real.rename(...args)),
    rm: (...args: Parameters<typeof fs.rm>) => guarded(() => real.rm(...args)),
    mkdir: (...args: Parameters<typeof fs.mkdir>) => guarded(() => real.mkdir(...args))
  })
  return () => void Object.assign(fs, real)
}

test('a crash at any write leaves a log that holds, with every line that was said to be on disk', { timeout: 180_000 }, async (t) => {
  const arbLives = fc.array(fc.record({ changes: fc.nat(160), lines: fc.nat(12) }), { minLength: 1, maxLength: 3 })
  let crashes = 0
  const property = fc.asyncProperty(arbLives, async (lives) => {
    const home = await newHome(t)
    let known: string[] = []
    for (const [index, { changes, lines }] of lives.entries()) {
      const wanted = codes(lines, 100 * index)
      const undo = crashAfter(changes)
      const written = await live(home, wanted).finally(undo)
      if (written.length < wanted.length) crashes++
      if (!(await isWhole(home))) return false
      known = [...known, ...written]
      const kept = (await codesOf(home)).filter((code) => known.includes(code))
      if (kept.join() !== known.slice(known.length - kept.length).join() || (written.length > 0 && kept.at(-1) !== written.at(-1)))
        return false
    }
    await live(home, ['end'])
    return (await isWhole(home)) && (await codesOf(home)).at(-1) === 'end'
  })
  await holds(t, property, 200)
  t.ok(crashes > 30, `${crashes} crashes`)
})
