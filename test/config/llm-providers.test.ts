import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { loadConfig } from '../../src/config/load.js'
import { shownConfig } from '../../src/config/settings.js'
import { NodeError } from '../../src/kit/errors.js'
import { tempDir } from '../support/tmp.js'

async function loaded(t: Assert, lines: readonly string[]): ReturnType<typeof loadConfig> {
  const file = path.join(await tempDir(t), 'config.yaml')
  fs.writeFileSync(file, ['llm:', '  providers:', ...lines.map((line) => `    ${line}`), ''].join('\n'))
  return await loadConfig({ file, env: {} })
}

test('an LLM provider has an address and defaults, and its secrets are not shown', async (t: Assert) => {
  const { config } = await loaded(t, [
    'local: { url: "http://127.0.0.1:8080/v1" }',
    'far:',
    '  url: https://llm.example/v1?key=sk-1',
    '  model: big',
    '  apiKey: sk-2',
    '  headers: { x-key: sk-3, x-team: env:TEAM }',
    '  stallTimeout: 30s'
  ])
  const { local, far } = config.llm.providers
  t.alike(local, { url: 'http://127.0.0.1:8080/v1', model: null, apiKey: null, headers: {}, stallTimeoutMs: 120_000 })
  t.is(far.stallTimeoutMs, 30_000)
  const shown = JSON.stringify(shownConfig(config).llm)
  t.absent(/sk-\d/.test(shown), shown)
  t.ok(shown.includes('env:TEAM') && shown.includes('https://llm.example/v1?(hidden)'))
})

test('an invalid setting of an LLM provider is refused at its own line, without its secrets', async (t: Assert) => {
  const wrong: readonly (readonly [string, string])[] = [
    ['a: {}', 'llm.providers.a.url'],
    ['a: { url: "file:///etc/passwd" }', 'llm.providers.a.url'],
    ['a: { url: "http://me:sk-1@host/v1" }', 'llm.providers.a.url'],
    ['a: { url: "http://host/v1", stallTimeout: 5m }', 'llm.providers.a.stallTimeout'],
    ['a: { url: "http://host/v1", apiKey: "sk-1\\n" }', 'llm.providers.a.apiKey'],
    ['a: { url: "http://host/v1", key: sk-1 }', 'llm.providers.a.key'],
    ['A b: { url: "http://host/v1" }', 'llm.providers.A b']
  ]
  for (const [line, key] of wrong) {
    const refused = await loaded(t, [line]).catch((error: unknown) => error)
    const text = refused instanceof NodeError ? `${refused.message} ${JSON.stringify(refused.data)}` : 'taken'
    t.ok(text.includes(`"key":"${key}"`) && text.includes('config.yaml:3') && !text.includes('sk-1'), text)
  }
})

test('the environment names no LLM provider', async (t: Assert) => {
  const refused = await loadConfig({ file: '/nowhere', env: { A2A_NODE_LLM_PROVIDERS: '{}' } }).catch(
    (error: unknown) => error
  )
  t.ok(refused instanceof NodeError && refused.code === 'CONFIG_INVALID')
})
