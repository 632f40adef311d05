import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test, { type Assert } from 'brittle'
import { PARTIAL_DIR } from '../../src/adapters/agents/files/granted-paths.js'
import { BIN, type LocalNode, localMesh, testMesh, until, untilAgent, untilOnline } from '../support/nodes.js'

const MIB = 1024 * 1024

interface Done {
  readonly schema: string
  readonly bytes: number
  readonly resumedAt: number
  readonly sha256: string
}

/** The home of a node with granted directories. */
async function homeWith(
  root: string,
  grants: Readonly<Partial<Record<'grants' | 'writeGrants', string>>>
): Promise<string> {
  const home = path.join(root, 'a')
  await fs.mkdir(home, { mode: 0o700 })
  const lines = Object.entries(grants).map(([key, dir]) => `  ${key}: [${JSON.stringify(dir)}]\n`)
  await fs.writeFile(path.join(home, 'config.yaml'), `agents:\n${lines.join('')}`, { mode: 0o600 })
  return home
}

/** Runs a transfer of a process, and kills it at its first report of progress. */
async function killedAtFirstReport(words: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(BIN, [...words, '--json', '--follow'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    if (line.includes('"type":"transfer"')) child.kill('SIGKILL')
  }
  await exited
  if (child.signalCode !== 'SIGKILL') throw new Error(`it ended by itself: ${lines.join('\n')}`)
}

test('a put and a get of 40 MiB continue after a kill of the command and of the node, with equal hashes', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const [root, dir] = [await mesh.dir(), await mesh.dir()]
  const home = await homeWith(root, { grants: dir, writeGrants: dir })
  const a = await mesh.start('a', { home })
  const { code } = await a.json<{ code: string }>(['invite', '--mine'])
  const b = await mesh.start('b', { join: code })
  await Promise.all([a, b].map((node) => untilOnline(node, 1)))
  const [source, target, copy] = [path.join(root, 'big.bin'), path.join(dir, 'big.bin'), path.join(root, 'copy')]
  const bytes = randomBytes(40 * MIB + 1)
  await fs.writeFile(source, bytes)
  const put = ['files', 'put', source, 'a:']
  await killedAtFirstReport(['--home', b.home, ...put], mesh.env)
  t.alike(await fs.readdir(dir), [PARTIAL_DIR], 'no half of the file has its name')
  a.kill('SIGKILL')
  await a.exited
  await mesh.start('a', { home })
  await Promise.all([untilOnline(b, 1), untilAgent(b, 'files@a')])
  const sent = await b.json<Done>(put)
  t.is(sent.schema, 'a2a-node/files-put@1')
  t.ok(sent.resumedAt >= 4 * MIB && sent.resumedAt < bytes.length, `continued at ${sent.resumedAt}`)
  t.is(sent.sha256, createHash('sha256').update(bytes).digest('hex'))
  t.ok(bytes.equals(await fs.readFile(target)), 'the same bytes')
  t.alike(await fs.readdir(dir), ['big.bin'], 'no partial is left')

  await fs.mkdir(copy)
  const get = ['files', 'get', 'a:big.bin', copy]
  await killedAtFirstReport(['--home', b.home, ...get], mesh.env)
  t.absent((await fs.readdir(copy)).includes('big.bin'), 'no half of the file has its name')
  const fetched = await b.json<Done>(get)
  t.ok(fetched.resumedAt >= 3 * MIB && fetched.resumedAt < bytes.length, `continued at ${fetched.resumedAt}`)
  t.is(fetched.sha256, sent.sha256)
  t.ok(bytes.equals(await fs.readFile(path.join(copy, 'big.bin'))), 'the same bytes')
  t.alike(await fs.readdir(copy), ['big.bin'], 'no part is left')
})

interface Small {
  readonly a: LocalNode
  readonly b: LocalNode
  readonly dir: string
  readonly source: string
}

/** A guest `b` of a node `a` that grants a directory for reading and writing. */
async function guestScene(t: Assert): Promise<Small> {
  const mesh = await localMesh(t)
  const [root, dir] = [await mesh.dir(), await fs.realpath(await mesh.dir())]
  const a = await mesh.start('a', { home: await homeWith(root, { grants: dir, writeGrants: dir }) })
  const { code } = await a.json<{ code: string }>(['invite'])
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1), untilAgent(b, 'files@a'), untilAgent(a, 'files@b')])
  const source = path.join(root, 'notes.txt')
  await fs.writeFile(source, randomBytes(7 * MIB))
  return { a, b, dir, source }
}

test('a put of a guest asks the owner once, by path, size and hash; a denied one writes nothing', async (t) => {
  const { a, b, dir, source } = await guestScene(t)
  const put = b.cli(['files', 'put', source, 'a:'])
  const { approvals } = await until(a.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  t.alike(await fs.readdir(dir), [], 'nothing is written before')
  const shown = (await a.cli(['approvals', 'show', approvals[0]?.id ?? ''])).stdout
  t.ok(shown.includes('files.write') && shown.includes('notes.txt') && shown.includes(String(7 * MIB)), shown)
  await a.api.call('approvals.allow', { id: approvals[0]?.id ?? '' })
  const done = await put
  t.is(done.code, 0, done.stderr)
  t.ok(/^[0-9a-f]{64} {2}a:.*notes\.txt\n$/.test(done.stdout), done.stdout)
  t.ok((await fs.readFile(source)).equals(await fs.readFile(path.join(dir, 'notes.txt'))))

  const denied = b.cli(['files', 'put', source, 'a:other.txt'])
  const second = await until(a.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  await a.api.call('approvals.deny', { id: second.approvals[0]?.id ?? '' })
  t.is((await denied).code, 5)
  t.alike(await fs.readdir(dir), ['notes.txt'])
  const got = await b.cli(['files', 'get', 'a:notes.txt', path.join(dir, 'copy')])
  t.is(got.code, 0, `a guest reads at once: ${got.stderr}`)
})

test('each refusal of files has its exit code and a next step, and changes no file', async (t) => {
  const { a, b, dir, source } = await guestScene(t)
  const own = await a.cli(['files', 'put', source, 'a:'])
  t.is(own.code, 0, `a node puts to itself: ${own.stderr}`)
  t.ok((await a.cli(['files', 'put', source, 'a:'])).stderr.includes('has this content already'))
  await fs.writeFile(source, 'other')
  const cases: readonly (readonly [LocalNode, readonly string[], number, RegExp])[] = [
    [a, ['put', source, 'b:'], 5, /agents\.writeGrants .*\[FORBIDDEN\]\n {2}try: a2a-node .*config path {3}# on b/],
    [a, ['get', 'b:x'], 5, /agents\.grants .*\[FORBIDDEN\]\n {2}try: a2a-node .*config path {3}# on b/],
    [a, ['put', source, 'a:'], 9, /the target exists on a; .*\[FILE_EXISTS\]\n {2}try: a2a-node .* --force\n/],
    [b, ['get', 'a:notes.txt', source], 9, /exists; --force replaces it {2}\[FILE_EXISTS\]\n {2}try: .* --force\n/],
    [b, ['get', 'a:../a/config.yaml', dir], 1, /agents\.grants .*\[TASK_FAILED\]\n {2}try: a2a-node .*files ls a:/],
    [b, ['ls', 'a:/etc'], 1, /agents\.grants/],
    [a, ['put', source, 'a:no/dir/'], 1, /agents\.writeGrants/],
    [b, ['put', source, 'nobody:'], 4, /AGENT_NOT_FOUND/],
    [b, ['put', 'a:x', source], 2, /is no <node>:<path>/],
    [b, ['get', 'a:.', source], 2, /names no file/],
    [b, ['put', '/dev/null', 'a:'], 2, /no regular file/],
    [b, ['put', `${source}.missing`, 'a:'], 2, /no such file/]
  ]
  const before = await fs.readFile(path.join(dir, 'notes.txt'))
  for (const [node, words, code, error] of cases) {
    const result = await node.cli(['files', ...words])
    t.is(result.code, code, `${words.join(' ')}: ${result.stderr}`)
    t.ok(error.test(result.stderr), result.stderr)
  }
  t.ok(before.equals(await fs.readFile(path.join(dir, 'notes.txt'))))
  const listed = await b.json<{ schema: string; entries: { name: string }[] }>(['files', 'ls', 'a:.'])
  t.alike([listed.schema, listed.entries.map(({ name }) => name)], ['a2a-node/files@1', ['notes.txt']])
  t.is((await a.cli(['files', 'put', source, 'a:', '--force'])).code, 0)
  t.is(await fs.readFile(path.join(dir, 'notes.txt'), 'utf8'), 'other')
})
