import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { MemoryTelemetry } from '../../src/adapters/telemetry/memory-telemetry.js'
import { ConfigReload } from '../../src/compose/config-reload.js'
import { loadConfig } from '../../src/config/load.js'
import { tempDir } from '../support/tmp.js'

interface World {
  readonly reload: ConfigReload
  readonly lines: string[]
  write(text: string): Promise<void>
  load(text: string): ReturnType<ConfigReload['reload']>
}

async function world(t: Assert): Promise<World> {
  const file = path.join(await tempDir(t), 'config.yaml')
  const load = async () => (await loadConfig({ file, env: {} })).config
  const lines: string[] = []
  const clock = { now: () => Date.parse('2030-01-02T03:04:05Z') }
  const telemetry = new MemoryTelemetry({ clock, level: 'info', format: 'text', write: (line) => lines.push(line) })
  const reload = new ConfigReload(await load(), { clock, telemetry, source: { load, reloadCommand: 'kill -HUP 7' } })
  return {
    reload,
    lines,
    write: async (text) => await fs.writeFile(file, text),
    load: async (text) => {
      await fs.writeFile(file, text)
      return await reload.reload(load)
    }
  }
}

test('a reload applies what a running node can change, and names every other changed setting until it is undone', async (t) => {
  const { reload, lines, load } = await world(t)
  const seen: string[] = []
  reload.live(['log.level', 'log.redactKeys'], ({ log }) => seen.push(log.level))
  t.is(reload.last, null)
  const first = await load('log: { level: debug, redactKeys: [pin] }\nswarm: { deadlineMs: 1m }\nhttp: { listen: 0 }\n')
  t.alike(first, {
    at: '2030-01-02T03:04:05.000Z',
    error: null,
    applied: ['log.level', 'log.redactKeys'],
    needRestart: ['http.listen', 'swarm.deadlineMs']
  })
  t.alike(seen, ['debug'], 'once a reload')
  t.is(reload.config.log.level, 'debug')
  t.is(reload.config.http.listen, null, 'a setting that needs a restart is not in force')
  t.ok(lines.some((line) => line.includes('the config was reloaded') && line.includes('http.listen, swarm.deadlineMs')))
  const again = await load('log: { level: debug, redactKeys: [pin] }\nhttp: { listen: 0 }\n')
  t.alike([again.applied, again.needRestart], [[], ['http.listen']])
})

test('a config that cannot be loaded keeps the old one in force, in the log and in status, until it can', async (t) => {
  const { reload, lines, load } = await world(t)
  await load('tasks: { maxInFlight: 7 }\n')
  for (const bad of [
    'log: { level: loud }\n',
    'log: [',
    'nothing: { at: all }\n',
    'agents: { imports: { a: { dir: x, runtime: llm } } }\n'
  ]) {
    const { error, applied, needRestart } = await load(bad)
    t.ok(error !== null && error.includes('config.yaml:1'), error ?? '')
    t.alike([applied, needRestart], [[], ['tasks.maxInFlight']])
    t.is(reload.config.log.level, 'info')
    const [problem] = reload.problems()
    t.ok(problem?.code === 'CONFIG_INVALID' && problem.message.includes('the old one is in force'))
    t.ok(lines.at(-1)?.includes('error the config was not reloaded'))
  }
  await load('')
  t.alike([reload.problems(), reload.last?.needRestart], [[], []])
})

test('a look names every setting that differs from those in force, live ones as well, until it is undone or reloaded', async (t) => {
  const { reload, write, load } = await world(t)
  reload.live(['log.level'], () => {})
  const problems = async (): Promise<readonly [string, string][]> => {
    await reload.look()
    return reload.problems().map(({ code, message }) => [code, message] as const)
  }
  t.alike(await problems(), [])
  await write('llm: { providers: { a: { url: "http://127.0.0.1:1/v1" } } }\nlog: { level: debug }\n')
  const [[code, message] = []] = await problems()
  t.is(code, 'CONFIG_CHANGED')
  t.ok(message?.startsWith('these settings of the config are not in force yet: llm.providers, log.level;'), message)
  t.is(reload.problems()[0]?.next, 'a2a-node stop && a2a-node start')
  await load('log: { level: debug }\nnode: { name: other }\n')
  const [[, after] = []] = await problems()
  t.ok(after?.startsWith('this setting of the config is not in force yet: node.name;'), 'a reload took the live one')
  await write('log: { level: warn }\n')
  const [[, live] = []] = await problems()
  t.ok(live?.endsWith('log.level; reload the config'), live)
  t.is(reload.problems()[0]?.next, 'kill -HUP 7', 'no restart is needed')
  await write('log: { level: debug }\n')
  t.alike(await problems(), [])
})

test('a config with a fault is reported by a look, before a start fails by it', async (t) => {
  const { reload, write } = await world(t)
  await write('log: { level: loud }\n')
  await reload.look()
  const [problem] = reload.problems()
  t.is(problem?.code, 'CONFIG_INVALID')
  t.ok(problem?.message.startsWith('the next start would fail, since the config has a fault: '), problem?.message)
  t.is(problem?.next, 'a2a-node config check')
})
