import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { type BackupPart, BackupWriter, readBackup } from '../../../../src/adapters/storage/home/backup-file.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

const PARTS: readonly BackupPart[] = [
  { name: 'manifest.json', bytes: Buffer.from('{}'), mode: 0o600 },
  { name: 'home/empty', bytes: new Uint8Array(0), mode: 0o600 },
  { name: 'config/agents/run it.sh', bytes: Buffer.from('\n{"end":true}\n'), mode: 0o755 }
]

async function write(file: string, parts: readonly BackupPart[], mayReplace = false): Promise<void> {
  const writer = await BackupWriter.create(file, { mayReplace })
  for (const part of parts) await writer.add(part)
  await writer.finish()
}

async function read(file: string): Promise<BackupPart[]> {
  const parts: BackupPart[] = []
  for await (const part of readBackup(file)) parts.push({ ...part, bytes: Buffer.from(part.bytes) })
  return parts
}

test('a backup returns its contents, and only its user may read the file', async (t) => {
  const file = path.join(await tempDir(t), 'one')
  await write(file, PARTS)
  t.alike(
    await read(file),
    PARTS.map((part) => ({ ...part, bytes: Buffer.from(part.bytes) }))
  )
  t.is((await fs.stat(file)).mode & 0o777, 0o600)
})

test('a backup that was cut, changed or added to anywhere is refused', async (t) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'one')
  await write(file, PARTS)
  const whole = await fs.readFile(file)
  const other = path.join(dir, 'other')
  const refused = async (bytes: Uint8Array): Promise<void> => {
    await fs.writeFile(other, bytes)
    await failsWith(t, 'STORE_DAMAGED', () => read(other))
  }
  await fc.assert(
    fc.asyncProperty(
      fc.nat(whole.length - 1),
      fc.integer({ min: 1, max: 255 }),
      fc.boolean(),
      async (at, change, isCut) => {
        const copy = Buffer.from(whole)
        copy[at] = (copy[at] ?? 0) ^ change
        await refused(isCut ? whole.subarray(0, at) : copy)
      }
    ),
    { numRuns: 150 }
  )
  await refused(Buffer.concat([whole, Buffer.from('x')]))
})

test('a name that leads out of a home is neither written nor read', async (t) => {
  const dir = await tempDir(t)
  for (const name of ['../x', 'home/../../x', '/etc/x', 'home//x', 'home/./x', 'a\0b', '']) {
    const writer = await BackupWriter.create(path.join(dir, 'one'), { mayReplace: false })
    await failsWith(t, 'INTERNAL', () => writer.add({ name, bytes: new Uint8Array(0), mode: 0o600 }))
    await writer.abort()
  }
  const forged = path.join(dir, 'forged')
  await fs.writeFile(forged, 'a2a-node backup 1\n{"part":"../x","mode":384,"bytes":0,"sha256":"e3b0"}\n')
  await failsWith(t, 'STORE_DAMAGED', () => read(forged))
  t.alike(await fs.readdir(dir), ['forged'], 'an abandoned restore leaves nothing')
})

test('a part or a name beyond the limits is not written, and not read: no backup is made that cannot be restored', async (t) => {
  const dir = await tempDir(t)
  const [part, name] = [2 ** 30, 2048]
  const long = Array.from({ length: 8 }, () => 'x'.repeat(255)).join('/')
  t.is(long.length, name - 1)
  const writer = await BackupWriter.create(path.join(dir, 'one'), { mayReplace: false })
  await writer.add({ name: long, bytes: new Uint8Array(1), mode: 0o600 })
  await failsWith(t, 'USAGE', () => writer.add({ name: 'home/large', bytes: new Uint8Array(part + 1), mode: 0o600 }))
  await failsWith(t, 'USAGE', () =>
    writer.add({ name: long.replaceAll('x', '\u0001'), bytes: new Uint8Array(0), mode: 0o600 })
  )
  await failsWith(t, 'INTERNAL', () => writer.add({ name: `${long}/y`, bytes: new Uint8Array(0), mode: 0o600 }))
  await failsWith(t, 'INTERNAL', () => writer.add({ name: 'x'.repeat(256), bytes: new Uint8Array(0), mode: 0o600 }))
  await writer.finish()
  t.alike(
    (await read(path.join(dir, 'one'))).map((one) => one.name),
    [long]
  )
  const forged = path.join(dir, 'forged')
  const head = { part: 'home/x', mode: 0o600, bytes: part + 1, sha256: '' }
  for (const line of [
    head,
    { ...head, bytes: -1 },
    { ...head, part: `${long}/y`, bytes: 0 },
    { ...head, bytes: 0, more: 'x'.repeat(4096) }
  ]) {
    await fs.writeFile(forged, `a2a-node backup 1\n${JSON.stringify(line)}\n`)
    await fs.truncate(forged, part + 9000)
    await failsWith(t, 'STORE_DAMAGED', () => read(forged))
  }
})

test('a backup below a file is refused, and the file is named', async (t) => {
  const file = path.join(await tempDir(t), 'file')
  await fs.writeFile(file, '')
  const { message, next } = await failsWith(t, 'CONFIG_INVALID', () => write(path.join(file, 'below', 'backup'), []))
  t.is(message, `${file} is not a directory`)
  t.alike(next, [`ls -ld ${path.join(file, 'below')}`])
})

test('a file that is there stays, unless it may be replaced; it is replaced whole', async (t) => {
  const file = path.join(await tempDir(t), 'one')
  await write(file, PARTS)
  await failsWith(t, 'FILE_EXISTS', () => write(file, []))
  const late = await BackupWriter.create(file, { mayReplace: true })
  await late.add({ name: 'half', bytes: new Uint8Array(9), mode: 0o600 })
  t.is((await read(file)).length, 3, 'as it was until the other is whole')
  await late.finish()
  t.is((await read(file))[0]?.name, 'half')
  await failsWith(t, 'CONFIG_INVALID', () => write(path.join(file, 'below'), []))
  await failsWith(t, 'USAGE', () => read(`${file}.none`))
})
