import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import type { Teardown } from '../support/tmp.js'
import { tempDir } from '../support/tmp.js'

/** A change of the file that runs, as `scripts/call-path/recorder.mjs` records it. */
interface Change {
  readonly file: number
  readonly isMove: boolean
}

interface Recorder {
  begin(): void
  end(): readonly Change[]
}

/** Scripts are not compiled; tests run in the root of the repository. */
async function script<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(path.resolve('scripts', name)).href)) as T
}

/**
 * Runs `main` of the first of some sources, which import each other as `./<number>.mjs`; each change as `>file` (a
 * move) or `<file`.
 */
async function changesOf(t: Teardown, sources: readonly string[]): Promise<readonly string[]> {
  const { instrument } = await script<{ instrument(source: string, file: number): string }>('call-path/instrument.mjs')
  const { Recorder } = await script<{ Recorder: new () => Recorder }>('call-path/recorder.mjs')
  const dir = await tempDir(t)
  for (const [file, source] of sources.entries()) {
    await fs.writeFile(path.join(dir, `${file}.mjs`), instrument(source, file))
  }
  const recorder = new Recorder()
  Object.assign(globalThis, { $recorder: recorder })
  t.teardown(() => Reflect.deleteProperty(globalThis, '$recorder'))
  const { main } = (await import(pathToFileURL(path.join(dir, '0.mjs')).href)) as { main(): unknown }
  recorder.begin()
  await main()
  return recorder.end().map(({ file, isMove }) => `${isMove ? '>' : '<'}${file}`)
}

test('a call into another file is a move, its return is a way back, and a call within a file is neither', async (t) => {
  const first = `import { Other } from './1.mjs'
    const twice = (value: number): number => value + value
    export function main() { const other = new Other(); return twice(other.size) + twice(other.size) }`
  const second = 'export class Other { constructor() { this.reset() } reset() {} get size() { return 1 } }'
  t.alike(await changesOf(t, [first, second]), ['>0', '>1', '<0', '>1', '<0', '>1', '<0'])
})

test('a function that waits does not run: its caller does, and a wait that fails continues in the function that catches it', async (t) => {
  const first = `import { later, fails } from './1.mjs'
    import { note } from './2.mjs'
    export async function main() {
      const waiting = later()
      note()
      await waiting
      try { await fails() } catch { note() } finally { note() }
    }`
  const second = `export async function later() { await new Promise((resolve) => setImmediate(resolve)); return 1 }
    export const fails = async () => { await null; throw new Error('expected') }`
  const third = 'export function note() {}'
  const expected = ['>0', '>1', '<0', '>2', '<0', '<1', '<0', '>1', '<0', '<1', '<0', '>2', '<0', '>2', '<0']
  t.alike(await changesOf(t, [first, second, third]), expected)
})

test('a generator runs from one value to the next, and a loop over it in between', async (t) => {
  const first = `import { values, others } from './1.mjs'
    import { note } from './2.mjs'
    export async function main() {
      for (const value of values()) note(value)
      for await (const value of others()) note(value)
    }`
  const second = `export function* values() { yield 1; yield* [2] }
    export async function* others() { yield 3 }`
  const third = 'export const note = (value: number): number => value'
  const sync = ['>0', '>1', '<0', '>2', '<0', '<1', '<0', '>2', '<0']
  t.alike((await changesOf(t, [first, second, third])).slice(0, sync.length), sync)
  const changes = await changesOf(t, [first, second, third])
  t.is(changes.filter((one) => one === '>2').length, 3)
  t.is(changes.at(-1), '<0')
})
