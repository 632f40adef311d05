import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { getFile } from '../../../src/cli/files/get.js'
import { fileAddress, RemoteFiles } from '../../../src/cli/files/remote-files.js'
import { Output } from '../../../src/cli/terminal/output.js'
import type { NodeApi } from '../../../src/ports/node-api.js'
import { holds } from '../../support/holds.js'
import { tempDir } from '../../support/tmp.js'

type Range = Readonly<Record<string, unknown>>

interface FakeFile {
  readonly bytes: Uint8Array
  /** Bytes of one answer at most. */
  readonly piece: number
  /** Changes an answer of files.read. */
  change?(range: Range): Range
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Answers of a node with one file. */
function remoteOf({ bytes, piece, change = (range) => range }: FakeFile): RemoteFiles {
  const facts = { path: '/srv/a', size: bytes.length, modifiedAt: 'now' }
  const answer = (capability: string, input: { offset: number }): Range => {
    if (capability === 'files.stat') return { ...facts, type: 'file', sha256: sha256(bytes) }
    const part = bytes.subarray(input.offset, input.offset + piece)
    return change({ ...facts, offset: input.offset, bytes: Buffer.from(part).toString('base64') })
  }
  async function* watch(
    _name: string,
    params: { capability: string; input: { offset: number } }
  ): AsyncGenerator<object> {
    const payload = await Promise.resolve(answer(params.capability, params.input))
    yield { type: 'reply', reply: { agent: 'files@a', taskId: null, outcome: 'COMPLETED', payload, error: null } }
  }
  const api = { watch } as unknown as NodeApi
  return new RemoteFiles({
    context: { output, api: () => api },
    address: fileAddress('a:/srv/a'),
    level: 'quiet',
    signal: new AbortController().signal,
    timeoutMs: undefined,
    justification: undefined
  })
}

const silent = { write: () => true }
const output = new Output({ json: false, color: 'never', out: silent, err: silent, env: {} })

async function get(dir: string, file: FakeFile, isForced = false): ReturnType<typeof getFile> {
  const options = { output, level: 'quiet', signal: new AbortController().signal, isForced } as const
  return await getFile(remoteOf(file), { source: '/srv/a', target: dir }, options)
}

test('a get continues any part, also a damaged or too long one, and ends with the same bytes alone', async (t: Assert) => {
  const dir = await tempDir(t)
  await holds(
    t,
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 50 }),
      fc.uint8Array({ maxLength: 60 }),
      fc.tuple(fc.nat(50), fc.boolean(), fc.integer({ min: 1, max: 20 })),
      async (bytes, other, [length, isDamaged, piece]) => {
        const part = isDamaged ? other : bytes.subarray(0, length)
        await fs.writeFile(path.join(dir, `.a.${sha256(bytes).slice(0, 16)}.part`), part)
        const done = await get(dir, { bytes, piece })
        const isSame = Buffer.compare(await fs.readFile(path.join(dir, 'a')), bytes) === 0
        const names = await fs.readdir(dir)
        await fs.rm(path.join(dir, 'a'))
        return isSame && names.length === 1 && (isDamaged || done.resumedAt === part.length)
      }
    )
  )
})

test('an answer that does not fit the file fails the get, and leaves no file of its name', async (t: Assert) => {
  const bytes = Buffer.from('0123456789')
  const changes: readonly (readonly [string, string, (range: Range) => Range])[] = [
    ['other bytes', 'CONFLICT', (range) => ({ ...range, bytes: Buffer.from('x').toString('base64') })],
    ['no bytes', 'INVALID_OUTPUT', (range) => ({ ...range, bytes: '' })],
    ['more bytes', 'INVALID_OUTPUT', (range) => ({ ...range, bytes: Buffer.alloc(11).toString('base64') })],
    ['another size', 'CONFLICT', (range) => ({ ...range, size: 11 })],
    ['another time', 'CONFLICT', (range) => ({ ...range, modifiedAt: 'later' })],
    ['another place', 'CONFLICT', (range) => ({ ...range, offset: 1 })],
    [
      'an earlier build',
      'INVALID_OUTPUT',
      ({ path: name, size }) => ({ path: name, size, truncated: false, text: '0123456789' })
    ]
  ]
  for (const [name, code, change] of changes) {
    const dir = await tempDir(t)
    const failed = await get(dir, { bytes, piece: 4, change }).then(
      () => 'done',
      (error: unknown) => (error as { code?: string }).code
    )
    t.is(failed, code, name)
    t.absent((await fs.readdir(dir)).includes('a'), name)
  }
})

test('a local file stays without force, and a link or directory of its name stays with it', async (t: Assert) => {
  const dir = await tempDir(t)
  const file = { bytes: Buffer.from('new'), piece: 10 }
  await fs.writeFile(path.join(dir, 'a'), 'old')
  await t.exception(get(dir, file), /--force replaces it/)
  t.is(await fs.readFile(path.join(dir, 'a'), 'utf8'), 'old')
  await get(dir, file, true)
  t.is(await fs.readFile(path.join(dir, 'a'), 'utf8'), 'new')
  await fs.rm(path.join(dir, 'a'))
  await fs.symlink('b', path.join(dir, 'a'))
  await t.exception(get(dir, file, true), /no regular file/)
  t.alike(await fs.readdir(dir), ['a'])
})

test('a file whose name has the most bytes that a file system takes is fetched, in any script', async (t: Assert) => {
  for (const name of ['a'.repeat(255), '\u00e9'.repeat(127), '\u65e5'.repeat(85), 'a' + '\ud83d\udcc4'.repeat(63)]) {
    const dir = await tempDir(t)
    await get(path.join(dir, name), { bytes: Buffer.from('new'), piece: 2 })
    t.alike(await fs.readdir(dir), [name])
  }
})

test('an address is a node or an agent before the first colon, and a path', async (t: Assert) => {
  t.alike(fileAddress('desktop:a:b'), { agent: 'files@desktop', node: 'desktop', path: 'a:b' })
  t.alike(fileAddress('mine@desktop:'), { agent: 'mine@desktop', node: 'desktop', path: '' })
  for (const text of ['', 'a', ':a', '@a:b', 'a@:b', '/a/b'])
    await t.exception(() => fileAddress(text), /no <node>:<path>/, text)
})
