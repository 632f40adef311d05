import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { connect } from '../../src/client.js'
import type { NodeInfo, Problem, StatusInfo } from '../../src/ports/node-api.js'
import { testMesh, until } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

test('a hangup makes a detached node reload its config and log, and another one end', async (t) => {
  const mesh = await testMesh(t)
  const home = await tempDir(t)
  const [config, log] = [path.join(home, 'config.yaml'), path.join(home, 'node.log')]
  const started = await mesh.run(['--home', home, '--json', 'start', '--detach'])
  t.is(started.code, 0, started.stderr)
  const { pid } = JSON.parse(started.stdout) as NodeInfo
  t.teardown(() => mesh.run(['--home', home, 'stop']))
  const api = connect({ home })
  const reloaded = async (text: string | null): Promise<StatusInfo> => {
    if (text === null) await fs.rm(config)
    else await fs.writeFile(config, text)
    const before = (await api.call('node.status', {})).reload?.at
    process.kill(pid, 'SIGHUP')
    return await until(api, 'node.status', {}, ({ reload }) => reload?.at !== before)
  }
  await fs.writeFile(config, 'llm: { providers: { local: { url: "http://127.0.0.1:9/v1" } } }\n')
  const changed = (await api.call('node.status', {})).problems.map(({ code, next }) => [code, next])
  t.alike(changed, [['CONFIG_CHANGED', `kill -HUP ${pid}`]], 'a reload is enough for a model server')
  await reloaded('')
  t.alike((await api.call('node.status', {})).problems, [])
  const more = path.join(home, 'more')
  await fs.mkdir(more)
  await fs.writeFile(
    path.join(more, 'echo.md'),
    '---\ndescription: d\na2a: { capabilities: [{ id: e }], runtime: { type: command, command: [cat] } }\n---\n'
  )
  await fs.rename(log, `${log}.1`)
  const { reload } = await reloaded(`agents: { dirs: [${more}] }\nhttp: { maxConnections: 9 }\n`)
  t.alike([reload?.applied, reload?.needRestart, reload?.error], [['agents.dirs'], ['http.maxConnections'], null])
  await until(api, 'node.status', {}, ({ agents }) => agents.ready.includes('echo'))
  t.ok((await fs.readFile(log, 'utf8')).includes('the config was reloaded'), 'the log is a new file')
  const bad = await reloaded('http: { maxConnections: many }\n')
  t.ok(
    bad.state === 'running' && bad.pid === pid && bad.reload?.error?.includes('config.yaml:1'),
    'it goes on with the old config'
  )
  t.ok(bad.agents.ready.includes('echo'))
  const gone = await reloaded(null)
  t.ok(
    gone.reload?.error?.includes('config.yaml is gone') && gone.agents.ready.includes('echo'),
    'defaults do not take its place'
  )
  const { stdout } = await mesh.run(['--home', home, 'status'])
  t.ok(stdout.includes('not reloaded') && stdout.includes('after a restart: http.maxConnections'), stdout)
  const attached = await mesh.start('b')
  attached.kill('SIGHUP')
  t.is((await attached.exited).code, 129)
})

test('status, doctor and config check name settings that the running node does not use, until its next start', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const home = await mesh.dir()
  const args = ['--http', '127.0.0.1:0']
  const a = await mesh.start('a', { home, args })
  const config = path.join(home, 'config.yaml')
  t.alike((await a.json<StatusInfo>(['status'])).problems, [], 'a flag is no change of the config')
  await fs.writeFile(
    config,
    'llm: { providers: { local: { url: "http://127.0.0.1:9/v1" } } }\nswarm: { deadlineMs: 1m }\n'
  )
  for (const words of [['status'], ['doctor'], ['config', 'check'], ['start']]) {
    const { stdout } = await a.cli(words)
    t.ok(stdout.includes('not in force yet: llm.providers, swarm.deadlineMs;'), `${words.join(' ')}: ${stdout}`)
    t.ok(/try: a2a-node --home \S+ stop && a2a-node --home \S+ start\n/.test(stdout), stdout)
  }
  const { problems } = await a.json<{ problems: Problem[] }>(['config', 'check'])
  t.is(problems[0]?.code, 'CONFIG_CHANGED')
  await fs.writeFile(config, 'llm: 7\n')
  t.ok((await a.cli(['status'])).stdout.includes('the next start would fail, since the config has a fault'))
  await fs.writeFile(config, 'swarm: { deadlineMs: 1m }\n')
  await a.stop()
  const again = await mesh.start('a', { home })
  t.alike((await again.json<StatusInfo>(['status'])).problems, [])
  t.alike((await again.json<{ problems: Problem[] }>(['config', 'check'])).problems, [])
})

test('status of a detached node names the log that takes nothing until it works again', {
  skip: process.platform !== 'linux'
}, async (t) => {
  const mesh = await testMesh(t)
  const home = await tempDir(t)
  const log = path.join(home, 'node.log')
  await fs.symlink('/dev/full', log)
  const started = await mesh.run(['--home', home, 'start', '--detach'])
  t.is(started.code, 0, started.stderr)
  t.teardown(() => mesh.run(['--home', home, 'stop']))
  t.ok(started.stdout.includes(`no space left to write ${log}; it is tried again  [DISK_FULL]`), started.stdout)
  await fs.rm(log)
  const { stdout } = await mesh.run(['--home', home, 'status'])
  t.absent(stdout.includes('problem'), stdout)
  t.ok((await fs.readFile(log, 'utf8')).includes('Log follows'), 'the output waited')
  await fs.rm(log)
  await fs.mkdir(log)
  const removed = await mesh.run(['--home', home, 'status'])
  t.ok(removed.stdout.includes(`${log} cannot be written: it is a directory`), removed.stdout)
})
