import fs from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import { holds } from '../../../support/holds.js'
import { codes, codesOf, isWhole, live, newHome } from '../../../support/audit-home.js'

/** What somebody may do to a chain: cut its files, and take its head away or make it unreadable. */
const arbDamage = fc.record({
  chain: fc.constantFrom('approvals', 'audit'),
  lines: fc.integer({ min: 1, max: 12 }),
  /** Lines left in the newest file; null: as it was. */
  left: fc.option(fc.nat(1)),
  head: fc.constantFrom(null, '', '{}', 'null', '{"seq":1}')
})

test('a chain whose head was taken away or made unreadable stays broken over every start, and goes on', {
  timeout: 180_000
}, async (t) => {
  const property = fc.asyncProperty(
    arbDamage,
    fc.integer({ min: 1, max: 3 }),
    async ({ chain, lines, left, head }, starts) => {
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
    }
  )
  await holds(t, property, 100)
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
      args[1] === 'r' || args[1] === undefined
        ? real.open(...args)
        : guarded(async () => wrap(await real.open(...args))),
    rename: (...args: Parameters<typeof fs.rename>) => guarded(() => real.rename(...args)),
    rm: (...args: Parameters<typeof fs.rm>) => guarded(() => real.rm(...args)),
    mkdir: (...args: Parameters<typeof fs.mkdir>) => guarded(() => real.mkdir(...args))
  })
  return () => void Object.assign(fs, real)
}

test('a crash at any write leaves a valid log, with every line that was reported as on disk', {
  timeout: 180_000
}, async (t) => {
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
      if (
        kept.join() !== known.slice(known.length - kept.length).join() ||
        (written.length > 0 && kept.at(-1) !== written.at(-1))
      )
        return false
    }
    await live(home, ['end'])
    return (await isWhole(home)) && (await codesOf(home)).at(-1) === 'end'
  })
  await holds(t, property, 200)
  t.ok(crashes > 30, `${crashes} crashes`)
})
