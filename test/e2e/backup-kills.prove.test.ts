import { spawn } from 'node:child_process'
import { watch } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type CommandResult, ROOT, type TestMesh, testMesh } from '../support/nodes.js'

const RESTORES = 8
const BACKUPS = 6
const POLICY = 'rules:\n  - name: asks\n    from: { tier: L3 }\n    decision: ask\n'
const AGENT =
  '---\nname: own\ndescription: Counts.\na2a:\n  capabilities: [{ id: text.stats, description: Counts. }]\n  runtime: { type: command, command: [cat] }\n---\n'

interface Cut {
  /** How long it had worked before it was killed, or had ended, in milliseconds. */
  readonly worked: number
  readonly signal: NodeJS.Signals | null
}

/** Runs a command, and kills it so long after a name with this in it has appeared in a directory; null: lets it end. */
async function cutOff(
  args: readonly string[],
  how: { env: object; dir: string; sign: string; afterMs: number | null }
): Promise<Cut> {
  const { env, dir, sign, afterMs } = how
  const watcher = watch(dir)
  const child = spawn(process.execPath, [path.join(ROOT, 'bin', 'a2a-node.js'), ...args], {
    env: { ...process.env, ...env },
    stdio: 'ignore'
  })
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_code, signal) => resolve(signal)))
  const began = await new Promise<number>((resolve) => {
    watcher.on('change', (_event, name) => (String(name).includes(sign) ? resolve(performance.now()) : undefined))
    void ended.then(() => resolve(performance.now()))
  })
  watcher.close()
  if (afterMs !== null) setTimeout(() => child.kill('SIGKILL'), afterMs)
  return { signal: await ended, worked: performance.now() - began }
}

/** A place to restore to: with `--home`, or as the system wants it, with settings elsewhere. */
interface Place {
  readonly dir: string
  readonly home: string
  readonly config: string
  readonly flags: readonly string[]
  readonly env: Record<string, string>
}

async function placeIn(dir: string, isShared: boolean): Promise<Place> {
  await fs.mkdir(path.join(dir, 'a2a-node'), { recursive: true })
  const home = path.join(dir, 'a2a-node', 'default')
  if (isShared) return { dir: path.dirname(home), home, config: home, flags: ['--home', home], env: {} }
  const config = path.join(dir, 'config')
  return {
    dir: path.dirname(home),
    home,
    config: path.join(config, 'a2a-node'),
    flags: [],
    env: { XDG_DATA_HOME: dir, XDG_CONFIG_HOME: config }
  }
}

/** Settings are there, and the stores can be read from end to end. */
async function wholeness(mesh: TestMesh, place: Place): Promise<string> {
  const [policy, own] = await Promise.all(
    ['policy.yaml', 'agents/own.md'].map((name) => fs.readFile(path.join(place.config, name), 'utf8'))
  )
  const { code, stderr } = await mesh.run([...place.flags, 'backup', path.join(place.dir, 'check')], { env: place.env })
  return policy === POLICY && own === AGENT && code === 0 ? 'whole' : stderr
}

/** A node that ran and stopped, with a backup of it. */
async function backedUp(mesh: TestMesh): Promise<{ dir: string; home: string; file: string }> {
  const dir = await mesh.dir()
  const a = await mesh.start('a')
  await fs.writeFile(path.join(a.home, 'policy.yaml'), POLICY)
  await fs.writeFile(path.join(a.home, 'agents', 'own.md'), AGENT)
  await a.json(['call', 'text', 'text.stats', '{"text":"one two"}'])
  await a.stop()
  const file = path.join(dir, 'node.backup')
  const { code, stderr } = await mesh.run(['--home', a.home, 'backup', file])
  if (code !== 0) throw new Error(stderr)
  return { dir, home: a.home, file }
}

const restore = (mesh: TestMesh, place: Place, file: string): Promise<CommandResult> =>
  mesh.run([...place.flags, 'restore', file], { env: place.env })

test('a restore that is killed at any moment leaves nothing or a whole home; a second one makes it, or says that it is there', {
  timeout: 300_000
}, async (t) => {
  const mesh = await testMesh(t)
  const { dir, file } = await backedUp(mesh)
  const how = { sign: '.restoring', env: mesh.env }
  const first = await placeIn(path.join(dir, 'first'), true)
  const { worked } = await cutOff([...first.flags, 'restore', file], { ...how, dir: first.dir, afterMs: null })
  let kills = 0
  for (let round = 0; kills < RESTORES; round++) {
    const place = await placeIn(path.join(dir, String(round)), round % 2 === 0)
    // Later than all of it now and then: the end has its moments too.
    const afterMs = Math.random() * worked * 1.2
    const cut = await cutOff([...place.flags, 'restore', file], {
      ...how,
      env: { ...mesh.env, ...place.env },
      dir: place.dir,
      afterMs
    })
    if (cut.signal === 'SIGKILL') kills++
    const isThere = (await fs.readdir(place.dir)).includes('default')
    const again = await restore(mesh, place, file)
    t.is(
      again.code,
      isThere ? 9 : 0,
      `${Math.round(afterMs)} of ${Math.round(worked)} ms, ${isThere ? 'there' : 'not there'}: ${again.stderr}`
    )
    if (isThere) t.ok(/restore <file> --home <new directory>/.test(again.stderr), again.stderr)
    t.is(await wholeness(mesh, place), 'whole')
    t.alike(
      (await fs.readdir(place.config)).filter((name) => name.includes('restoring')),
      []
    )
  }
})

test('a backup that is killed at any moment leaves no file that looks whole and is not, and hinders no other', {
  timeout: 300_000
}, async (t) => {
  const mesh = await testMesh(t)
  const { dir, home } = await backedUp(mesh)
  const how = { sign: '.tmp', env: mesh.env }
  const files = path.join(dir, 'files')
  await fs.mkdir(files)
  const { worked } = await cutOff(['--home', home, 'backup', path.join(files, 'first')], {
    ...how,
    dir: files,
    afterMs: null
  })
  let kills = 0
  for (let round = 0; kills < BACKUPS; round++) {
    const name = `backup-${round}`
    const cut = await cutOff(['--home', home, 'backup', path.join(files, name)], {
      ...how,
      dir: files,
      afterMs: Math.random() * worked * 1.1
    })
    if (cut.signal === 'SIGKILL') kills++
    const left = (await fs.readdir(files)).filter((one) => one.startsWith(name))
    for (const [index, one] of left.entries()) {
      const place = await placeIn(path.join(dir, `${name}-${index}`), true)
      const { code, stderr } = await restore(mesh, place, path.join(files, one))
      if (code === 0) t.is(await wholeness(mesh, place), 'whole', one)
      else t.alike([code, one.endsWith('.tmp'), (await fs.readdir(place.dir)).length], [78, true, 0], stderr)
    }
  }
  const last = await mesh.run(['--home', home, 'backup', path.join(files, 'last')])
  t.is(last.code, 0, last.stderr)
})
