import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { PARTIAL_DIR } from '../../../../src/adapters/agents/files/granted-paths.js'
import { MAX_PARTIALS, PARTIAL_LIFETIME_MS } from '../../../../src/adapters/agents/starters/files-limits.js'
import { MAX_FILE_BYTES, MAX_RANGE_BYTES } from '../../../../src/kit/transfer/limits.js'
import { FILES_CAPABILITIES } from '../../../../src/adapters/agents/starters/starter-files-card.js'
import { FilesStarter } from '../../../../src/adapters/agents/starters/starter-files.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'
import { holds } from '../../../support/holds.js'
import { smallDisk } from '../../../support/small-disk.js'
import { tempDir } from '../../../support/tmp.js'

const PEER = 'peer'

interface Scene {
  readonly dir: string
  ask(capability: string, input: object, peer?: string): Promise<AgentOutcome>
  /** Restarts the agent. */
  restart(): void
  /** Names in the granted directory. */
  names(): Promise<readonly string[]>
  /** Names of unfinished uploads. */
  partials(): Promise<readonly string[]>
  /** Moves the clock. */
  pass(ms: number): void
}

async function scene(t: Assert, place?: string, more: readonly string[] = []): Promise<Scene> {
  const dir = await fs.realpath(place ?? (await tempDir(t)))
  let ahead = 0
  const clock = { now: () => Date.now() + ahead }
  const start = (): FilesStarter => new FilesStarter({ grants: [dir], writeGrants: [dir, ...more], clock })
  let agent = start()
  return {
    dir,
    restart: () => void (agent = start()),
    ask: async (capability, input, peer = PEER) =>
      await agent.run({ capability, input, peer }, new AbortController().signal),
    names: async () => (await fs.readdir(dir)).sort(),
    partials: async () => await fs.readdir(path.join(dir, PARTIAL_DIR)).catch(() => []),
    pass: (ms) => void (ahead += ms)
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function uploadOf(name: string, bytes: Uint8Array): { path: string; size: number; sha256: string } {
  return { path: name, size: bytes.length, sha256: sha256(bytes) }
}

function rangeOf(bytes: Uint8Array, from: number, to: number): { offset: number; bytes: string } {
  return { offset: from, bytes: Buffer.from(bytes.subarray(from, to)).toString('base64') }
}

/** The result of an outcome, or the reason of its refusal. */
function read(outcome: AgentOutcome): Record<string, unknown> {
  if (outcome.ok) return outcome.result as Record<string, unknown>
  const data = outcome.data as { reason?: string } | undefined
  return { refused: data?.reason ?? outcome.message }
}

test('a file written in any ranges, repeated and cut anywhere, comes whole, and no partial stays', async (t: Assert) => {
  const { dir, ask, names, restart } = await scene(t)
  let count = 0
  await holds(
    t,
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 60 }),
      fc.array(fc.tuple(fc.nat(20), fc.boolean()), { maxLength: 8 }),
      async (bytes, cuts) => {
        const upload = uploadOf(`f${count++}`, bytes)
        let state = read(await ask('files.write', upload))
        for (const [length, isCut] of [...cuts, [60, false] as const]) {
          const at = state['offset'] as number
          if (state['done'] === true) break
          const range = { ...upload, ...rangeOf(bytes, at, at + length) }
          state = read(await ask('files.append', range))
          // The answer is lost: the caller sends it again, or begins anew and finds the place.
          if (isCut) state = read(await ask('files.append', range))
          else if (state['done'] !== true) {
            restart()
            const found = read(await ask('files.append', { ...upload, offset: 0, bytes: '' }))
            if (found['offset'] !== at + Math.min(length, bytes.length - at)) return false
            if (found['sha256'] !== sha256(bytes.subarray(0, found['offset']))) return false
          }
        }
        const isWhole = Buffer.compare(await fs.readFile(path.join(dir, upload.path)), bytes) === 0
        return state['done'] === true && isWhole && !(await names()).includes(PARTIAL_DIR)
      }
    )
  )
})

test('files.read gives each range of a file as bytes, and files.stat its hash', async (t: Assert) => {
  const { dir, ask } = await scene(t)
  const bytes = Buffer.from('some text with a euro: \u20ac')
  await fs.writeFile(path.join(dir, 'a'), bytes)
  t.is(read(await ask('files.stat', { path: 'a', sha256: true }))['sha256'], sha256(bytes))
  t.absent('sha256' in read(await ask('files.stat', { path: 'a' })))
  await holds(
    t,
    fc.asyncProperty(fc.nat(40), fc.integer({ min: 1, max: 40 }), async (offset, length) => {
      const range = read(await ask('files.read', { path: 'a', offset, length }))
      const expected = bytes.subarray(offset, offset + length)
      const isSame = Buffer.from(range['bytes'] as string, 'base64').equals(expected)
      return isSame && range['truncated'] === offset + expected.length < bytes.length && range['offset'] === offset
    })
  )
})

test('bytes with another hash leave neither file nor partial, and a damaged partial is found by its hash', async (t: Assert) => {
  const { ask, names, dir, partials } = await scene(t)
  const bytes = Buffer.from('0123456789')
  const upload = uploadOf('a', bytes)
  await ask('files.write', upload)
  t.alike(read(await ask('files.append', { ...upload, ...rangeOf(Buffer.from('x123456789'), 0, 10) })), {
    refused: 'checksum'
  })
  t.alike(
    [...(await names()), ...(await partials())].filter((name) => name !== PARTIAL_DIR),
    []
  )
  await ask('files.write', upload)
  await ask('files.append', { ...upload, ...rangeOf(bytes, 0, 4) })
  const [partial = ''] = await partials()
  await fs.writeFile(path.join(dir, PARTIAL_DIR, partial), 'xxxx')
  const found = read(await ask('files.write', upload))
  t.alike([found['offset'], found['sha256'] === sha256(bytes.subarray(0, 4))], [4, false])
  t.is(read(await ask('files.append', { ...upload, ...rangeOf(bytes, 0, 10) }))['done'], true, 'the caller begins anew')
})

test('an existing file stays without force, also one that appears meanwhile, and force keeps its mode', async (t: Assert) => {
  const { dir, ask } = await scene(t)
  const bytes = Buffer.from('new')
  const [upload, file] = [uploadOf('a', bytes), path.join(dir, 'a')]
  await ask('files.write', upload)
  await fs.writeFile(file, 'old', { mode: 0o640 })
  t.alike(read(await ask('files.append', { ...upload, ...rangeOf(bytes, 0, 3) })), { refused: 'exists' })
  t.alike(read(await ask('files.write', upload)), { refused: 'exists' })
  t.is(await fs.readFile(file, 'utf8'), 'old')
  const forced = { ...upload, force: true }
  t.is(
    read(await ask('files.append', { ...forced, ...rangeOf(bytes, 0, 3) }))['refused'],
    'no-upload',
    'force is part of the approval'
  )
  await ask('files.write', forced)
  t.is(read(await ask('files.append', { ...forced, ...rangeOf(bytes, 0, 3) }))['done'], true)
  t.alike([await fs.readFile(file, 'utf8'), (await fs.stat(file)).mode & 0o777], ['new', 0o640])
  t.is(read(await ask('files.write', upload))['done'], true, 'the same content is there')
})

test('bytes without files.write, of another caller, or for another size or content are refused', async (t: Assert) => {
  const { ask, names } = await scene(t)
  const bytes = Buffer.from('0123456789')
  const upload = uploadOf('a', bytes)
  const range = rangeOf(bytes, 0, 10)
  t.alike(read(await ask('files.append', { ...upload, ...range })), { refused: 'no-upload' })
  await ask('files.write', upload)
  t.alike(read(await ask('files.append', { ...upload, ...range }, 'other')), { refused: 'no-upload' })
  for (const other of [{ size: 11 }, { sha256: sha256(Buffer.from('x')) }, { path: 'b' }])
    t.alike(read(await ask('files.append', { ...upload, ...other, ...range })), { refused: 'no-upload' })
  t.alike(read(await ask('files.append', { ...upload, ...rangeOf(bytes, 5, 10) })), { refused: 'gap' })
  const long = Buffer.from('0123456789x')
  t.alike(read(await ask('files.append', { ...upload, ...rangeOf(long, 0, 11) })), { refused: 'gap' })
  t.alike(await names(), [PARTIAL_DIR])
})

test('a complete upload whose node stopped before the rename is put in its place when its caller asks', async (t: Assert) => {
  const { dir, ask, partials, restart } = await scene(t)
  const bytes = Buffer.from('0123456789')
  const upload = uploadOf('a', bytes)
  await ask('files.write', upload)
  const [partial = ''] = await partials()
  await fs.writeFile(path.join(dir, PARTIAL_DIR, partial), bytes)
  restart()
  t.is(read(await ask('files.append', { ...upload, offset: 0, bytes: '' }))['done'], true)
  t.alike(await fs.readdir(dir), ['a'])
})

test('an ended upload whose target was replaced or removed since is no finished one: it is written again', async (t: Assert) => {
  const { dir, ask } = await scene(t)
  const [first, second] = [Buffer.from('first'), Buffer.from('second')]
  const write = async (bytes: Uint8Array): Promise<void> => {
    const upload = { ...uploadOf('a', bytes), force: true }
    t.alike(read(await ask('files.append', { ...upload, offset: 0, bytes: '' })), { refused: 'no-upload' })
    await ask('files.write', upload)
    for (let i = 0; i < 2; i++)
      t.is(read(await ask('files.append', { ...upload, ...rangeOf(bytes, 0, bytes.length) }))['done'], true)
    t.is(await fs.readFile(path.join(dir, 'a'), 'utf8'), String(bytes))
  }
  for (const bytes of [first, second, first]) await write(bytes)
  await fs.rm(path.join(dir, 'a'))
  await write(first)
})

test('files.append says nothing of a file whose upload it does not know, so it cannot be probed', async (t: Assert) => {
  const { dir, ask } = await scene(t)
  await fs.writeFile(path.join(dir, 'a'), 'known')
  for (const bytes of ['known', 'other'])
    t.alike(read(await ask('files.append', { ...uploadOf('a', Buffer.from(bytes)), offset: 0, bytes: '' })), {
      refused: 'no-upload'
    })
})

test('no hostile path writes, reads or lists outside the granted directory, or its partials', async (t: Assert) => {
  const { dir, ask, partials } = await scene(t)
  const outside = await fs.realpath(await tempDir(t))
  await fs.writeFile(path.join(outside, 'secret'), 'secret')
  await fs.mkdir(path.join(dir, 'sub'))
  await fs.symlink(outside, path.join(dir, 'out'))
  await fs.symlink(path.join(outside, 'new'), path.join(dir, 'dangling'))
  await fs.symlink(path.join(outside, 'secret'), path.join(dir, 'link'))
  const open = uploadOf('open', Buffer.from('12'))
  await ask('files.write', open)
  const [partial = ''] = await partials()
  const inside = `${PARTIAL_DIR}/${partial}`
  const names = ['..', '.', '', 'a\nb', 'a\u0000b', 'a\u202eb', '\u001b[31m', 'a/', 'a'.repeat(256), PARTIAL_DIR]
  const paths = ['../x', 'sub/../../x', '/etc/x', `${outside}/x`, 'out/x', 'dangling', 'link', 'sub', inside, 'no/x']
  for (const wanted of [...names, ...paths])
    for (const force of [false, true]) {
      const outcome = await ask('files.write', { ...uploadOf(wanted, Buffer.from('1')), force })
      t.is(outcome.ok, false, JSON.stringify(wanted))
    }
  for (const wanted of ['../', outside, 'out', 'out/secret', 'link', inside, PARTIAL_DIR, '/proc/self/environ'])
    for (const [capability, more] of [
      ['files.read', { offset: 0 }],
      ['files.list', {}],
      ['files.stat', { sha256: true }]
    ] as const)
      t.is((await ask(capability, { path: wanted, ...more })).ok, false, `${capability} ${wanted}`)
  t.alike((await fs.readdir(outside)).sort(), ['secret'])
  t.is(await fs.readFile(path.join(outside, 'secret'), 'utf8'), 'secret')
})

test('a link in the place of the directory of uploads leads to no file: none is written, found or removed there', async (t: Assert) => {
  const { dir, ask, pass, restart } = await scene(t)
  const outside = path.join(await fs.realpath(await tempDir(t)), 'outside')
  const bytes = Buffer.from('0123456789')
  const upload = uploadOf('a', bytes)
  await ask('files.write', upload)
  await fs.rename(path.join(dir, PARTIAL_DIR), outside)
  await fs.symlink(outside, path.join(dir, PARTIAL_DIR))
  for (const range of [rangeOf(bytes, 0, 4), rangeOf(bytes, 0, 10), { offset: 0, bytes: '' }])
    t.is((await ask('files.append', { ...upload, ...range })).ok, false)
  t.alike(read(await ask('files.write', upload)), { refused: 'special' })
  pass(PARTIAL_LIFETIME_MS + 60_000)
  restart()
  await ask('files.list', {})
  const [partial = '', ...more] = await fs.readdir(outside)
  t.alike(more, [])
  t.is((await fs.stat(path.join(outside, partial))).size, 0)
})

test('a path below a file is refused before any byte is sent', async (t: Assert) => {
  const { dir, ask, names } = await scene(t)
  await fs.writeFile(path.join(dir, 'file'), 'x')
  for (const force of [false, true]) {
    t.is((await ask('files.write', { ...uploadOf('file/a', Buffer.from('1')), force })).ok, false)
    t.is((await ask('files.write', { ...uploadOf(`${dir}/file/a`, Buffer.from('1')), force })).ok, false)
  }
  t.alike(await names(), ['file'])
})

test('a directory on another disk than the granted one is refused before any byte, unless it is granted too', async (t: Assert) => {
  const disk = await smallDisk(t, 300)
  if (typeof disk === 'string') return t.comment(disk)
  const outer = path.dirname(disk.dir)
  const bytes = Buffer.from('0123456789')
  const upload = uploadOf(path.join(disk.dir, 'a'), bytes)
  const only = await scene(t, outer)
  t.alike(read(await only.ask('files.write', upload)), { refused: 'other-disk' })
  t.alike(await only.names(), ['disk'])
  const both = await scene(t, outer, [disk.dir])
  t.is(read(await both.ask('files.write', upload))['offset'], 0)
  t.is(read(await both.ask('files.append', { ...upload, ...rangeOf(bytes, 0, 10) }))['done'], true)
  t.alike(await fs.readdir(disk.dir), ['a'])
})

test('unfinished uploads are bounded in number and time, and their directory goes with the last one', async (t: Assert) => {
  const { ask, names, pass, partials, restart } = await scene(t)
  const upload = (i: number): object => uploadOf(`f${i}`, Buffer.from(`${i}`))
  for (let i = 0; i < MAX_PARTIALS; i++) t.is((await ask('files.write', upload(i))).ok, true)
  t.alike(read(await ask('files.write', upload(MAX_PARTIALS))), { refused: 'too-many' })
  t.is(read(await ask('files.write', upload(0)))['offset'], 0, 'a known one is found again')
  pass(PARTIAL_LIFETIME_MS - 60_000)
  restart()
  await ask('files.list', {})
  t.is((await partials()).length, MAX_PARTIALS)
  pass(120_000)
  restart()
  await ask('files.list', {})
  t.alike(await names(), [])
})

test('an upload without space on the disk leaves nothing, takes no bytes, and stops no smaller one', async (t: Assert) => {
  const disk = await smallDisk(t, 300)
  if (typeof disk === 'string') return t.comment(disk)
  const { ask, names } = await scene(t, disk.dir)
  const [large, small] = [{ ...uploadOf('large', Buffer.alloc(0)), size: MAX_FILE_BYTES }, Buffer.from('0123456789')]
  t.alike(read(await ask('files.write', large)), { refused: 'no-space' })
  t.alike(await names(), [])
  t.alike(read(await ask('files.append', { ...large, ...rangeOf(small, 0, 10) })), { refused: 'no-upload' })
  const upload = uploadOf('small', small)
  t.is(read(await ask('files.write', upload))['offset'], 0)
  await fs.writeFile(path.join(disk.dir, 'other'), Buffer.alloc(50 * 1024 * 1024))
  t.alike(read(await ask('files.append', { ...upload, ...rangeOf(small, 0, 10) })), { refused: 'no-space' })
  await fs.rm(path.join(disk.dir, 'other'))
  t.is(read(await ask('files.append', { ...upload, ...rangeOf(small, 0, 10) }))['done'], true, 'it continues')
})

test('files.list gives the granted directories, and the entries of one without control characters', async (t: Assert) => {
  const { dir, ask } = await scene(t)
  await fs.mkdir(path.join(dir, 'sub'))
  await fs.writeFile(path.join(dir, 'a'), '123')
  await fs.writeFile(path.join(dir, 'b\u001b[31m'), '')
  await ask('files.write', uploadOf('c', Buffer.from('1')))
  const names = (outcome: AgentOutcome): unknown =>
    (read(outcome)['entries'] as { name: string; type: string; size: number }[]).map(({ name, type }) => [name, type])
  t.alike(names(await ask('files.list', {})), [[dir, 'directory']])
  t.alike(names(await ask('files.list', { path: '.' })), [
    ['a', 'file'],
    ['sub', 'directory']
  ])
  t.is((await ask('files.list', { path: 'a' })).ok, false)
})

test('a write needs a directory of agents.writeGrants, a read one of agents.grants', async (t: Assert) => {
  const dir = await fs.realpath(await tempDir(t))
  const signal = new AbortController().signal
  const clock = { now: () => Date.now() }
  const upload = uploadOf('a', Buffer.from('1'))
  const reader = new FilesStarter({ grants: [dir], writeGrants: [], clock })
  const refused = await reader.run({ capability: 'files.write', input: upload }, signal)
  t.alike(refused.ok ? null : [refused.code, refused.data], ['FORBIDDEN', { key: 'agents.writeGrants' }])
  const writer = new FilesStarter({ grants: [], writeGrants: [dir], clock })
  t.is((await writer.run({ capability: 'files.write', input: upload }, signal)).ok, true)
  const unread = await writer.run({ capability: 'files.stat', input: { path: dir } }, signal)
  t.alike(unread.ok ? null : [unread.code, unread.data], ['FORBIDDEN', { key: 'agents.grants' }])
})

test('the input of files.append takes a range of the largest size, and no larger one', (t: Assert) => {
  const schema = FILES_CAPABILITIES.find(({ id }) => id === 'files.append')?.inputSchema
  const faults = (bytes: number): readonly unknown[] => {
    const content = Buffer.alloc(bytes)
    return createSchemaCompiler()(schema)({ ...uploadOf('a', content), ...rangeOf(content, 0, bytes) })
  }
  t.alike(faults(MAX_RANGE_BYTES), [])
  t.is(faults(MAX_RANGE_BYTES + 1).length > 0, true)
})
