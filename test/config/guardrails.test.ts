import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ConfigFault } from '../../src/config/candidate.js'
import { type LoadedConfig, loadConfig } from '../../src/config/load.js'
import { NodeError } from '../../src/kit/errors.js'
import { tempDir } from '../support/tmp.js'

async function load(
  t: Assert,
  lines: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<LoadedConfig> {
  const file = path.join(await tempDir(t), 'config.yaml')
  writeFileSync(file, `${lines.join('\n')}\n`)
  return await loadConfig({ file, env })
}

/** Faults as `line key: reason`. */
async function faults(
  t: Assert,
  lines: readonly string[],
  env: Readonly<Record<string, string>> = {}
): Promise<string[]> {
  const error: unknown = await load(t, lines, env).then(
    () => null,
    (thrown: unknown) => thrown
  )
  const found = error instanceof NodeError ? (error.data as { faults: readonly ConfigFault[] }).faults : []
  return found.map(({ line, key, reason }) => `${line ?? 'env'} ${key}: ${reason}`)
}

test('guardrails and the rate limit are read from the file, and absent settings have the shipped values', async (t: Assert) => {
  const { config } = await load(t, [
    'a2a:',
    '  guardrails:',
    '    input: { maxLength: 500, deny: ["(?i)password\\\\s*[:=]", "\\\\d{13,16}"] }',
    '  rateLimit: { perMinute: 30 }'
  ])
  t.alike(config.a2a.guardrails, {
    input: { maxLength: 500, deny: ['(?i)password\\s*[:=]', '\\d{13,16}'] },
    output: { maxLength: 1_000_000, deny: [] }
  })
  t.alike(config.a2a.rateLimit, { perMinute: 30, burst: 1000 })
})

test('each fault of a guardrail is reported at its line: patterns that RE2 does not know, or that cost too much, too', async (t: Assert) => {
  const found = await faults(t, [
    'a2a:',
    '  guardrails:',
    '    input:',
    '      maxLength: 0',
    '    output:',
    '      colour: red',
    '  rateLimit:',
    '    burst: 1.5'
  ])
  const has = (start: string): void =>
    t.ok(
      found.some((one) => one.startsWith(start)),
      `${start}: ${found.join('\n')}`
    )
  has('4 a2a.guardrails.input.maxLength: must be at least 1')
  has('6 a2a.guardrails.output.colour: no such key')
  has('8 a2a.rateLimit.burst: must be a whole number')
  const patterns = await faults(t, [
    'a2a:',
    '  guardrails:',
    '    input:',
    '      deny:',
    '        - "fine"',
    '        - "("',
    '        - "(?=ahead)"',
    '    output:',
    '      deny: ["(a)\\\\1", "a{50}", "b{60}", "c"]'
  ])
  t.alike(
    patterns.map((one) => one.replace(/: is no pattern of RE2: .*/, ': RE2').replace(/\d+ steps/, 'n steps')),
    [
      '6 a2a.guardrails.input.deny.1: RE2',
      '7 a2a.guardrails.input.deny.2: RE2',
      '9 a2a.guardrails.output.deny.0: RE2',
      '9 a2a.guardrails.output.deny.2: costs too much: up to here n steps for each of 1000000 characters; lower maxLength or shorten patterns'
    ]
  )
})

test('lists without end are refused, and so are mappings of the environment', async (t: Assert) => {
  const many = JSON.stringify(Array.from({ length: 33 }, () => 'a'))
  t.ok(
    (await faults(t, ['a2a:', `  guardrails: { input: { deny: ${many} } }`]))
      .join()
      .includes('has more than 32 patterns')
  )
  t.ok(
    (await faults(t, ['a2a:', `  guardrails: { input: { deny: [${'a'.repeat(513)}] } }`]))
      .join()
      .includes('more than 512 characters')
  )
  t.ok((await faults(t, ['a2a:', '  guardrails: [a]'])).join().includes('must be a mapping of input and output'))
  t.ok((await faults(t, ['a2a:', '  rateLimit: 7'])).join().includes('must be a mapping of perMinute and burst'))
  t.alike(await faults(t, [], { A2A_NODE_A2A_RATE_LIMIT: '{}' }), [
    'env A2A_NODE_A2A_RATE_LIMIT: can only be set in the config file'
  ])
})
