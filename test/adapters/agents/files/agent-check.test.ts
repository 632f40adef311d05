import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { AgentFiles } from '../../../../src/adapters/agents/files/agent-source.js'
import { TokenDays } from '../../../../src/adapters/agents/llm/daily-usage.js'
import { checkProvider } from '../../../../src/adapters/agents/llm/llm-check.js'
import type { LlmDeps } from '../../../../src/adapters/agents/llm/llm-parts.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { tempDir } from '../../../support/tmp.js'

const file = (name: string, runtime: string): string =>
  `---\nname: ${name}\ndescription: d\na2a:\n  capabilities:\n    - id: ${name}.do\n      description: d\n      input: { type: object }\n  runtime: ${runtime}\n---\n`

test('an agent is unhealthy when its program or module is not there, or does not load, and well again when it does', async (t: Assert) => {
  const dir = await tempDir(t)
  const agents = path.join(dir, 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'sound.md'), file('sound', '{ type: command, command: [sh, -c, "echo 1"] }'))
  await fs.writeFile(path.join(agents, 'lost.md'), file('lost', '{ type: command, command: [no-such-program-here] }'))
  await fs.writeFile(path.join(agents, 'mod.md'), file('mod', '{ type: module, path: ./mod.mjs }'))
  await fs.writeFile(path.join(agents, 'mod.mjs'), 'throw new Error("it is broken")')
  const files = new AgentFiles({
    dirs: [agents],
    runDir: path.join(dir, 'run'),
    grants: [],
    starters: false,
    clock: realClock
  })
  t.teardown(() => files.close())
  const loaded = await files.load()
  t.alike(loaded.faults, [])
  const of = (id: string) => {
    const agent = loaded.agents.find(({ definition }) => definition.id === id)
    if (agent?.check === undefined) throw new Error(`no check of ${id}`)
    return agent
  }
  const found = async (id: string) => await of(id).check?.(new AbortController().signal)
  t.alike(await found('sound'), { state: 'healthy', reason: null })
  t.alike(await found('lost'), {
    state: 'unhealthy',
    reason: 'its program no-such-program-here was not found or may not be executed'
  })
  const broken = await found('mod')
  t.alike([broken?.state, broken?.reason?.includes('it is broken')], ['unhealthy', true], 'it is loaded for the check')
  await fs.rm(path.join(agents, 'mod.mjs'))
  t.ok((await found('mod'))?.reason?.includes('cannot be read'))
})

test('a provider of language models is asked for its models, never a question, and identified by its answer', async (t: Assert) => {
  const asked: string[] = []
  const provider = { url: 'http://llm.test/v1/', model: 'm', apiKey: 'sk-secret', headers: {}, stallTimeoutMs: 1000 }
  const at = (answer: number | Error): LlmDeps => ({
    provider: (name) => (name === 'local' ? provider : null),
    tools: null,
    days: new TokenDays({ clock: realClock, store: null, onFault: () => {} }),
    fetch: (url, init) => {
      asked.push(`${init?.method ?? 'GET'} ${url as string} ${JSON.stringify(init?.headers)}`)
      return typeof answer === 'number'
        ? Promise.resolve(new Response(null, { status: answer }))
        : Promise.reject(answer)
    }
  })
  const { signal } = new AbortController()
  const state = async (answer: number | Error, name = 'local') => (await checkProvider(at(answer), name, signal)).state
  t.alike(
    await Promise.all([
      state(200),
      state(404),
      state(503),
      state(401),
      state(new Error('connect')),
      state(200, 'other')
    ]),
    ['healthy', 'healthy', 'degraded', 'unhealthy', 'unhealthy', 'unhealthy']
  )
  t.alike([...new Set(asked)], ['GET http://llm.test/v1/models {"authorization":"Bearer sk-secret"}'])
  const { reason } = await checkProvider(at(401), 'local', signal)
  t.absent(reason?.includes('sk-secret'), 'no secret is disclosed')
})
