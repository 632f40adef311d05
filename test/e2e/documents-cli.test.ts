import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test, { type Assert } from 'brittle'
import * as Y from 'yjs'
import { connect } from '../../src/client.js'
import { type CommandResult, ROOT, localMesh, type LocalNode, until, untilTrue } from '../support/nodes.js'

const BIN = path.join(ROOT, 'bin', 'a2a-node.js')

/** Resolves when a node knows a document. */
async function untilKnown(node: LocalNode, document: string): Promise<void> {
  await until(node.api, 'documents.list', {}, ({ documents }) => documents.some(({ name }) => name === document))
}

async function untilValue(
  node: LocalNode,
  document: string,
  { type, value }: { type: 'text' | 'map' | 'list'; value: unknown }
): Promise<void> {
  await untilKnown(node, document)
  await until(
    node.api,
    'documents.read',
    { document, type },
    (now) => JSON.stringify(now.value) === JSON.stringify(value)
  )
}

/** A command that goes on: its lines one by one, until it is stopped. */
function follow(
  t: Assert,
  node: LocalNode,
  args: readonly string[]
): { line(): Promise<string>; note(): Promise<string>; stop(): Promise<void> } {
  const child = spawn(process.execPath, [BIN, '--home', node.home, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  t.teardown(stop)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const notes = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
  return {
    line: async () => String((await lines.next()).value),
    note: async () => String((await notes.next()).value),
    stop
  }
}

function codeOf(result: CommandResult): string {
  return /\[([A-Z_]+)\]/.exec(result.stderr)?.[1] ?? ''
}

test('doc get prints on one node the values that doc set writes on the other: text, map and list', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  t.is((await a.cli(['doc', 'ls'])).stdout, 'no documents\n')
  const set = await a.cli(['doc', 'set', 'notes', '-'], 'one\ntwo\n')
  t.is(set.code, 0, set.stderr)
  t.is(set.stdout, '', 'stdout is data')
  await untilValue(b, 'notes', { type: 'text', value: 'one\ntwo\n' })
  t.is((await b.cli(['doc', 'get', 'notes'])).stdout, 'one\ntwo\n')
  t.is((await b.cli(['doc', 'set', 'notes', 'one\ntwo\nthree\n'])).code, 0)
  await untilValue(a, 'notes', { type: 'text', value: 'one\ntwo\nthree\n' })
  t.alike(
    await a
      .json(['doc', 'set', 'settings', '{"color":"blue","sizes":[1,2]}', '--type', 'map'])
      .then(({ changed, created }) => [changed, created]),
    [true, true]
  )
  await untilValue(b, 'settings', { type: 'map', value: { color: 'blue', sizes: [1, 2] } })
  // The type of what is there need not be said again.
  t.is((await b.cli(['doc', 'set', 'settings', '{"color":"red","sizes":[1,2]}'])).code, 0)
  await untilValue(a, 'settings', { type: 'map', value: { color: 'red', sizes: [1, 2] } })
  t.alike(JSON.parse((await a.cli(['doc', 'get', 'settings'])).stdout), { color: 'red', sizes: [1, 2] })
  await a.cli(['doc', 'set', 'list', '["x","y"]', '--type', 'list'])
  await untilValue(b, 'list', { type: 'list', value: ['x', 'y'] })
  t.is((await b.json(['doc', 'set', 'list', '["x","y"]']))['changed'], false)
  const { documents } = await b.json<{ documents: { name: string }[] }>(['doc', 'ls'])
  t.alike(documents.map(({ name }) => name).sort(), ['list', 'notes', 'settings'])
  const detail = await b.json<{ streams: { node: { name: string } }[] }>(['doc', 'show', 'notes'])
  t.alike(detail.streams.map(({ node }) => node.name).sort(), ['a', 'b'])
})

test('doc history names the writers of two nodes, doc show --at prints a former text, and doc restore gives it back to both', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.cli(['doc', 'set', 'notes', 'milk, bread\n'])
  await untilValue(b, 'notes', { type: 'text', value: 'milk, bread\n' })
  t.is((await b.cli(['doc', 'set', 'notes', 'spoiled'])).code, 0)
  await untilValue(a, 'notes', { type: 'text', value: 'spoiled' })
  type Listed = {
    total: number
    merged: null
    changes: { entry: string; at: string; by: { id: string; name: string } }[]
  }
  const [one, other] = await Promise.all([a, b].map((node) => node.json<Listed>(['doc', 'history', 'notes'])))
  t.alike(one, other, 'both list the same')
  t.alike(
    one?.changes.map(({ by }) => by.name),
    ['b', 'a']
  )
  t.is(one?.merged, null)
  const former = one?.changes[1]
  const entry = former?.entry ?? ''
  const listed = await a.cli(['doc', 'history', 'notes', '--limit', '1'])
  t.ok(listed.stdout.includes(' b ') && !listed.stdout.includes(entry), listed.stdout)
  t.ok(listed.stderr.includes('1 older change not listed: --limit 2'), listed.stderr)
  t.ok(listed.stderr.includes("times are those of the authors' clocks"), listed.stderr)
  t.is((await b.cli(['doc', 'show', 'notes', '--at', entry])).stdout, 'milk, bread\n')
  t.is((await a.cli(['doc', 'show', 'notes', '--at', former?.at ?? ''])).stdout, 'milk, bread\n')
  t.is((await a.cli(['doc', 'get', 'notes'])).stdout, 'spoiled', 'nothing is restored yet')
  const restored = await b.json<{ restored: unknown }>(['doc', 'restore', 'notes', '--at', entry])
  t.alike(restored.restored, [{ root: 'text', type: 'text' }])
  await untilValue(a, 'notes', { type: 'text', value: 'milk, bread\n' })
  t.is((await a.json<Listed>(['doc', 'history', 'notes'])).total, 3, 'a restore is one more change')
  for (const at of ['noon', '30d', `${entry}9`]) {
    const refused = await a.cli(['doc', 'restore', 'notes', '--at', at])
    t.is(codeOf(refused), at === 'noon' ? 'USAGE' : 'INVALID_INPUT', refused.stderr)
    t.ok(/ try: a2a-node .*doc (?:history notes|restore --help)\n/.test(refused.stderr), refused.stderr)
  }
  await a.cli(['doc', 'access', 'notes', '--write', 'nobody'])
  await until(b.api, 'documents.list', {}, ({ documents }) => documents.some(({ may }) => !may.write))
  t.is(codeOf(await b.cli(['doc', 'restore', 'notes', '--at', entry])), 'FORBIDDEN')
  t.is((await b.cli(['doc', 'show', 'notes', '--at', entry])).stdout, 'milk, bread\n', 'a reader still reads it')
  await a.cli(['doc', 'access', 'notes', '--see', 'nobody'])
  await until(b.api, 'documents.list', {}, ({ documents }) => documents.length === 0)
  t.is(codeOf(await b.cli(['doc', 'history', 'notes'])), 'DOCUMENT_NOT_FOUND')
})

test('doc edit keeps what another wrote while the editor was open, and writes nothing for nothing', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.cli(['doc', 'set', 'notes', 'first line\nlast line\n'])
  await untilValue(b, 'notes', { type: 'text', value: 'first line\nlast line\n' })
  const dir = await mesh.dir()
  const editor = path.join(dir, 'editor.sh')
  // While it is open the other end of the text is changed, on this very node.
  const cli = `${process.execPath} ${BIN} --home ${a.home}`
  const modes = path.join(dir, 'modes')
  const script = [
    '#!/bin/sh',
    `{ ls -l "$1"; ls -ld "$(dirname "$1")"; } > ${modes}`,
    `printf 'first line\\nlast line, theirs\\n' | ${cli} doc set notes - || exit 9`,
    `sed -i 's/first line/FIRST line/' "$1"`
  ]
  await fs.writeFile(editor, `${script.join('\n')}\n`, { mode: 0o755 })
  const edit = (): Promise<CommandResult> =>
    mesh.run(['--home', a.home, 'doc', 'edit', 'notes'], { env: { EDITOR: editor, TMPDIR: dir } })
  const ran = await edit()
  t.is(ran.code, 0, ran.stderr)
  await untilValue(b, 'notes', { type: 'text', value: 'FIRST line\nlast line, theirs\n' })
  const [file = '', directory = ''] = (await fs.readFile(modes, 'utf8')).split('\n')
  t.ok(file.startsWith('-rw-------') && directory.startsWith('drwx------'), `${file}, ${directory}`)
  const same = await mesh.run(['--home', a.home, 'doc', 'edit', 'notes', '--json'], {
    env: { EDITOR: 'true', TMPDIR: dir }
  })
  t.is((JSON.parse(same.stdout) as { changed: boolean }).changed, false)
  const failed = await mesh.run(['--home', a.home, 'doc', 'edit', 'notes'], { env: { EDITOR: 'false', TMPDIR: dir } })
  t.is(failed.code, 1)
  t.ok(failed.stderr.includes(`  try: EDITOR=<command> a2a-node --home ${a.home} doc edit notes\n`), failed.stderr)
  t.is((await a.cli(['doc', 'get', 'notes'])).stdout, 'FIRST line\nlast line, theirs\n')
  t.alike(
    (await fs.readdir(dir)).filter((name) => name.startsWith('a2a-node-doc-')),
    [],
    'no file stays'
  )
  const none = await mesh.run(['--home', a.home, 'doc', 'edit', 'notes'], { env: { EDITOR: '', VISUAL: '' } })
  t.is(none.code, 2)
})

test('the text of an editor that failed, or that is not UTF-8, stays in its file, and the error says how to write it', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.cli(['doc', 'set', 'notes', 'old'])
  const dir = await mesh.dir()
  const edit = async (line: string): Promise<CommandResult & { readonly file: string }> => {
    const ran = await mesh.run(['--home', a.home, 'doc', 'edit', 'notes'], {
      env: { VISUAL: `sh -c '${line}' -`, TMPDIR: dir }
    })
    return { ...ran, file: /saved in (\S+)/.exec(ran.stderr)?.[1] ?? '' }
  }
  const failed = await edit('echo typed > "$1"; exit 3')
  t.is(failed.code, 1)
  t.is(await fs.readFile(failed.file, 'utf8'), 'typed\n')
  t.ok(failed.stderr.includes(`  try: a2a-node --home ${a.home} doc set notes - < ${failed.file}\n`), failed.stderr)
  t.ok(failed.stderr.includes(`  try: VISUAL=<command> a2a-node --home ${a.home} doc edit notes\n`), failed.stderr)
  const foreign = await edit('printf "caf\\351" > "$1"')
  t.is(foreign.code, 2)
  t.alike(await fs.readFile(foreign.file), Buffer.from('caf\u00e9', 'latin1'))
  const iconv = `iconv -f '<its encoding>' -t UTF-8 ${foreign.file} | a2a-node --home ${a.home} doc set notes -`
  t.ok(foreign.stderr.includes(`  try: ${iconv}\n`), foreign.stderr)
  const gone = await edit('rm "$1"')
  t.is(gone.code, 2)
  t.ok(gone.stderr.includes('the editor left no file'), gone.stderr)
  const emptied = await edit(': > "$1"')
  t.alike([emptied.code, emptied.file], [2, ''], emptied.stderr)
  t.is((await a.cli(['doc', 'get', 'notes'])).stdout, 'old')
  const step = `doc edit notes --allow-empty`
  t.ok(emptied.stderr.includes(`  try: a2a-node --home ${a.home} ${step}\n`), emptied.stderr)
  const meant = await mesh.run(['--home', a.home, ...step.split(' ')], { env: { EDITOR: 'sh -c \': > "$1"\' -' } })
  t.is(meant.code, 0, meant.stderr)
  t.is((await a.cli(['doc', 'get', 'notes'])).stdout, '')
})

test('the text of an editor stays in its file when it cannot be written', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.cli(['doc', 'set', 'settings', '{"a":1}', '--type', 'map'])
  const dir = await mesh.dir()
  const ran = await mesh.run(['--home', a.home, 'doc', 'edit', 'settings'], {
    env: { EDITOR: 'sh -c \'echo "{" > "$1"\' -', TMPDIR: dir }
  })
  t.is(ran.code, 2, ran.stderr)
  const [, file = ''] = /saved in (\S+)/.exec(ran.stderr) ?? []
  t.is(await fs.readFile(file, 'utf8'), '{\n')
  t.ok(ran.stderr.includes(`doc set settings - --type map < ${file}\n`), ran.stderr)
  t.alike(JSON.parse((await a.cli(['doc', 'get', 'settings'])).stdout), { a: 1 })
})

test('doc watch prints a line for each change, doc export gives the whole document, doc rm keeps it no longer', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.cli(['doc', 'set', 'notes', 'hello'])
  await untilValue(b, 'notes', { type: 'text', value: 'hello' })
  const watch = follow(t, b, ['doc', 'watch', 'notes', '--json'])
  const first = JSON.parse(await watch.line()) as { schema: string; value: unknown }
  t.alike([first.schema, first.value], ['a2a-node/doc-change@1', 'hello'])
  await a.cli(['doc', 'set', 'notes', 'hello world'])
  t.is((JSON.parse(await watch.line()) as { value: unknown }).value, 'hello world')
  const doc = new Y.Doc()
  Y.applyUpdate(
    doc,
    Buffer.from((await b.json<{ base64: string }>(['doc', 'export', 'notes', '--format', 'yjs'])).base64, 'base64')
  )
  t.is(doc.getText('text').toJSON(), 'hello world')
  t.is((await b.cli(['doc', 'export', 'notes'])).stdout, 'hello world')
  t.alike(JSON.parse((await b.cli(['doc', 'export', 'notes', '--format', 'json'])).stdout), { text: 'hello world' })
  await a.api.call('documents.edit', { document: 'notes', edit: { type: 'map', root: 'm', map: { key: 1 } } })
  t.alike(JSON.parse((await a.cli(['doc', 'export', 'notes', '--format', 'json'])).stdout), {
    m: { key: 1 },
    text: 'hello world'
  })
  const busy = await b.cli(['doc', 'rm', 'notes'])
  t.is(busy.code, 9, busy.stderr)
  await watch.stop()
  await untilTrue(async () => (await b.cli(['doc', 'rm', 'notes'])).code === 0, 'the document is in use no longer')
  t.is((await b.api.call('documents.list', {})).documents[0]?.following, false)
  t.is((await a.cli(['doc', 'get', 'notes'])).stdout, 'hello world')
})

test('doc watch of a document without local content says so, prints no empty value, and continues once it comes', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.cli(['doc', 'set', 'settings', '{"color":"blue"}', '--type', 'map'])
  await untilValue(b, 'settings', { type: 'map', value: { color: 'blue' } })
  await a.stop()
  await untilTrue(async () => (await b.cli(['doc', 'rm', 'settings'])).code === 0, 'the document is in use no longer')
  const watch = follow(t, b, ['doc', 'watch', 'settings'])
  const json = follow(t, b, ['doc', 'watch', 'settings', '--type', 'map', '--json'])
  t.ok((await watch.note()).endsWith('and every node that has it is offline; it is shown when it arrives'))
  await mesh.start('a', { home: a.home })
  t.alike((JSON.parse(await json.line()) as { value: unknown }).value, { color: 'blue' }, 'the first line has a value')
  t.ok((await watch.line()).endsWith('settings  map of 1 entries'), 'the part that holds something')
})

test('a document that nobody knows is exit 4 with the name that was meant, and one that may not be written exit 5', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await a.api.call('documents.create', { name: 'notes', write: { members: ['a'], tier: null } })
  await a.cli(['doc', 'set', 'notes', 'mine'])
  await untilValue(b, 'notes', { type: 'text', value: 'mine' })
  for (const words of [
    ['get', 'note'],
    ['watch', 'note'],
    ['edit', 'note'],
    ['export', 'note'],
    ['rm', 'note'],
    ['show', 'note'],
    ['export', 'note', '--format', 'yjs']
  ]) {
    const ran = await mesh.run(['--home', b.home, 'doc', ...words], { env: { EDITOR: 'true' } })
    t.is(ran.code, 4, words.join(' '))
    t.is(codeOf(ran), 'DOCUMENT_NOT_FOUND')
    t.ok(ran.stderr.includes('did you mean notes?'), ran.stderr)
  }
  const denied = await b.cli(['doc', 'set', 'notes', 'ours'])
  t.is(denied.code, 5)
  t.is(codeOf(denied), 'FORBIDDEN')
  const edited = await mesh.run(['--home', b.home, 'doc', 'edit', 'notes'], { env: { EDITOR: 'true' } })
  t.is(edited.code, 5)
  const restricted = await b.cli(['doc', 'access', 'notes', '--write', 'everybody'])
  t.is(restricted.code, 5)
  for (const { stderr } of [denied, edited, restricted]) {
    t.ok(stderr.includes('its creator (a) and the owner of the mesh'), stderr)
    t.ok(stderr.includes(`  try: a2a-node --home ${b.home} doc access notes\n`), stderr)
    const words = stderr === restricted.stderr ? "'<who may>'" : 'a,b'
    t.ok(stderr.includes(`  try: a2a-node doc access notes --write ${words}   # on a`), stderr)
  }
  t.ok((await b.cli(['doc', 'access', 'notes'])).stdout.includes('may write'), 'which shows who may')
  t.is((await b.cli(['doc', 'get', 'notes'])).stdout, 'mine')
  for (const words of [
    ['set', 'new', '{', '--type', 'map'],
    ['set', 'new', '[]', '--type', 'map'],
    ['set', 'new', '{}', '--type', 'list'],
    ['get', 'notes', '--root', 'x'],
    ['get', 'notes', '--type', 'xml'],
    ['set', 'x'.repeat(129), 'a'],
    ['set', 'new'],
    ['export', 'notes', '--format', 'pdf']
  ])
    t.is((await b.cli(['doc', ...words])).code, 2, words.join(' '))
  t.alike(
    (await connect({ home: b.home }).call('documents.list', {})).documents.map(({ name }) => name),
    ['notes'],
    'nothing is created of wrong words'
  )
})

test('a map of many keys is set, read and changed', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, key) => [`key ${key}`, key]))
  const made = await a.cli(['doc', 'set', 'many', '-', '--type', 'map'], JSON.stringify(keys))
  t.is(made.code, 0, made.stderr)
  t.alike(JSON.parse((await a.cli(['doc', 'get', 'many'])).stdout), keys)
  const { code, stderr } = await mesh.run(['--home', a.home, 'doc', 'edit', 'many'], {
    env: { EDITOR: `sed -i 's/"key 7": 7/"key 7": 70/'` }
  })
  t.is(code, 0, stderr)
  t.alike(JSON.parse((await a.cli(['doc', 'get', 'many'])).stdout), { ...keys, 'key 7': 70 })
})

test('a value that is refused makes no document, and the error has the next step', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const keys = Object.fromEntries(Array.from({ length: 1001 }, (_, key) => [`key ${key}`, key]))
  const deep = `${'['.repeat(40)}${']'.repeat(40)}`
  const refused = [
    ['INVALID_INPUT', JSON.stringify({ nested: keys })],
    ['USAGE', `{"deep":${deep}}`],
    ['PAYLOAD_TOO_LARGE', JSON.stringify({ long: 'x'.repeat(300_000) })]
  ]
  for (const [code, value = ''] of refused) {
    const result = await a.cli(['doc', 'set', 'new', '-', '--type', 'map'], value)
    t.is(codeOf(result), code, result.stderr)
    t.ok(result.stderr.includes('doc set --help') && !result.stderr.includes('agents show'), result.stderr)
  }
  const name = await a.cli(['doc', 'set', 'two\nlines', 'text'])
  t.ok(codeOf(name) === 'INVALID_INPUT' && !name.stderr.includes('agents show'), name.stderr)
  t.is((await a.cli(['doc', 'ls'])).stdout, 'no documents\n')
})

test('doc access shows and sets readers and writers; omitted ones stay', async (t) => {
  const mesh = await localMesh(t)
  const [a, b, c] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode, LocalNode, LocalNode]
  await a.cli(['doc', 'set', 'notes', 'mine'])
  for (const node of [b, c]) await untilValue(node, 'notes', { type: 'text', value: 'mine' })
  const before = await b.json(['doc', 'access', 'notes'])
  t.alike([before['schema'], before['access'], before['changed']], ['a2a-node/doc-access@1', null, false])
  t.ok(
    (await b.cli(['doc', 'access', 'notes'])).stdout.includes('every member that is in no sandbox may see and write it')
  )
  const set = await a.json<{ access: { see: unknown; write: { members: { name: string }[]; tier: null } } }>([
    'doc',
    'access',
    'notes',
    '--write',
    'b'
  ])
  t.alike(set.access.see, { members: [], tier: 'L3', sandboxes: [], unsandboxed: true }, 'as it was')
  t.alike(
    set.access.write.members.map(({ name }) => name),
    ['b']
  )
  const mayWrite = async (node: LocalNode): Promise<boolean> =>
    (await node.api.call('documents.show', { document: 'notes' })).may.write
  await untilTrue(async () => !(await mayWrite(c)), 'the others know it')
  t.is((await c.cli(['doc', 'set', 'notes', 'theirs'])).code, 5)
  t.is((await b.cli(['doc', 'set', 'notes', 'ours'])).code, 0)
  const seen = await a.json<{ access: typeof set.access }>(['doc', 'access', 'notes', '--see', 'b'])
  t.alike(seen.access.write, set.access.write, 'the list of writers is not touched')
  await untilTrue(async () => (await c.api.call('documents.list', {})).documents.length === 0, 'it is hidden')
  t.is((await c.cli(['doc', 'get', 'notes'])).code, 4)
  t.is((await b.cli(['doc', 'access', 'notes', '--see', 'everybody'])).code, 5, 'only its creator and the owner set it')
  const made = await b.cli(['doc', 'access', 'secret', '--create', '--see', 'nobody'])
  t.is(made.code, 0, made.stderr)
  t.ok(made.stdout.includes('may see'), made.stdout)
  await untilKnown(a, 'secret')
  t.absent((await c.api.call('documents.list', {})).documents.some(({ name }) => name === 'secret'))
})

test('doc access takes no words that mean nothing', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.cli(['doc', 'set', 'notes', 'mine'])
  for (const words of [
    ['notes', '--see', ''],
    ['notes', '--see', 'nobody,L1'],
    ['notes', '--write', 'L1,L2'],
    ['notes', '--write', 'sandbox:a b'],
    ['notes', '--create'],
    []
  ]) {
    const ran = await a.cli(['doc', 'access', ...words])
    t.is(ran.code, 2, words.join(' '))
  }
  const nobody = await a.cli(['doc', 'access', 'notes', '--see', 'phone'])
  t.is(nobody.code, 4, nobody.stderr)
  t.is(codeOf(nobody), 'PEER_NOT_FOUND')
  t.is((await a.cli(['doc', 'access', 'note', '--see', 'everybody'])).code, 4)
  t.is((await a.json(['doc', 'access', 'notes']))['access'], null, 'nothing was set')
})
