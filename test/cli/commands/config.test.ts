import { spawnSync } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { allSettings } from '../../../src/config/settings.js'
import { tempDir } from '../../support/tmp.js'
import { run } from '../command-line.js'

test('config path prints where the file lies', async (t: Assert) => {
  const home = await tempDir(t)
  t.is((await run(['config', 'path'], { home })).stdout, `${home}/config.yaml\n`)
})

test('config show has every setting with its value and origin', async (t: Assert) => {
  const home = await tempDir(t)
  await writeFile(path.join(home, 'config.yaml'), 'swarm:\n  leaseMs: 8s\n')
  const env = { A2A_NODE_LOG_LEVEL: 'warn' }
  const { settings } = JSON.parse((await run(['config', 'show', '--json'], { home, env })).stdout) as {
    settings: Record<string, unknown>[]
  }
  t.alike(
    settings.map((one) => one['key']),
    allSettings().map((one) => one.path)
  )
  const lease = settings.find((one) => one['key'] === 'swarm.leaseMs')
  t.alike(
    [lease?.['value'], lease?.['source'], lease?.['where'], lease?.['unit']],
    [8000, 'file', `${home}/config.yaml:2`, 'ms']
  )
  t.is(settings.find((one) => one['key'] === 'log.level')?.['source'], 'env')
  const { stdout } = await run(['config', 'show'], { home, env })
  t.ok(stdout.includes(`  leaseMs: 8000   # from ${home}/config.yaml:2`), stdout)
  t.ok(stdout.split('\n').every((line) => line.length <= 80 || line.includes('# from') || line.includes(': {')))
})

test('config check names every fault and exits 78, or says ok', async (t: Assert) => {
  const home = await tempDir(t)
  t.is((await run(['config', 'check'], { home })).code, 0)
  await writeFile(path.join(home, 'config.yaml'), 'log:\n  level: loud\n  colour: red\n')
  const ran = await run(['config', 'check'], { home })
  t.is(ran.code, 78)
  t.ok(
    ran.stdout.includes('config.yaml:2: log.level: "loud" is not allowed (allowed: debug | info | warn | error)'),
    ran.stdout
  )
  t.ok(ran.stdout.includes('config.yaml:3: log.colour: no such key'))
  const json = JSON.parse((await run(['config', 'check', '--json'], { home })).stdout) as {
    ok: boolean
    faults: { line: number }[]
  }
  t.alike([json.ok, json.faults.map((one) => one.line).sort((a, b) => a - b)], [false, [2, 3]])
})

test('config check names each variable that the config needs and the environment lacks, and exits 0', async (t: Assert) => {
  const home = await tempDir(t)
  const lines = [
    'mcp:',
    '  servers:',
    '    notes: { command: [notes, "${ROOT}/x", "${file}", "${SET}", "${OPTIONAL:-none}", "$${literal}"], cwd: "${DIR}", env: { TOKEN: env:TOKEN, PLAIN: $PLAIN, ARG: "a$b" } }',
    '    web: { url: "https://x.example/${PATH_PART}", headers: { authorization: "Bearer ${KEY}" } }',
    'llm: { providers: { local: { url: "http://127.0.0.1:9/v1", apiKey: env:LLM_KEY, headers: { x-a: env:SET } } } }',
    'a2a: { agents: { far: { card: "https://far.example", auth: { bearer: env:FAR } } } }'
  ]
  await writeFile(path.join(home, 'config.yaml'), `${lines.join('\n')}\n`)
  const env = { SET: 'x' }
  const { code, stdout } = await run(['config', 'check', '--json'], { home, env })
  t.is(code, 0, stdout)
  const { ok, variables } = JSON.parse(stdout) as {
    ok: boolean
    variables: Record<'key' | 'variable' | 'kind', string>[]
  }
  t.alike(
    [ok, variables.map(({ key, variable, kind }) => `${key} ${variable} ${kind}`)],
    [
      true,
      [
        'mcp.servers.notes.command ROOT unset',
        'mcp.servers.notes.command file unset',
        'mcp.servers.notes.cwd DIR unset',
        'mcp.servers.notes.env.TOKEN TOKEN unset',
        'mcp.servers.notes.env.PLAIN PLAIN literal',
        'mcp.servers.web.url PATH_PART unset',
        'mcp.servers.web.headers.authorization KEY unset',
        'llm.providers.local.apiKey LLM_KEY unset',
        'a2a.agents.far.auth FAR unset'
      ]
    ]
  )
  const text = await run(['config', 'check'], { home, env })
  t.ok(text.stdout.includes('note  mcp.servers.notes.cwd: the variable DIR is not set here'), text.stdout)
  t.ok(text.stdout.includes('$PLAIN is passed as it is; write ${PLAIN} for the variable'), text.stdout)
})

test('config check judges what the next start would use: the remembered flags too', async (t: Assert) => {
  const home = await tempDir(t)
  const flags = async (value: unknown): Promise<string> => {
    await writeFile(path.join(home, 'start.flags'), JSON.stringify(value))
    const { code, stdout, stderr } = await run(['config', 'check'], { home })
    t.is(code, 0, stderr)
    return `${stdout}${stderr}`
  }
  t.ok((await flags({ version: 1, flags: { '--http': ['9001'] } })).includes('1 of '))
  t.ok((await flags({ version: 1, flags: { '--http': ['70000'] } })).includes('the value of --http in '))
  const newer = await flags({ version: 2, flags: { '--http': ['9001'] }, later: true })
  t.ok(newer.includes('start.flags is of a newer version of a2a-node (form 2; this version reads 1)'), newer)
  t.ok(newer.includes('0 of '), 'no flag of it is used')
})

test('config check says what is wrong with the file itself', async (t: Assert) => {
  const home = await tempDir(t)
  const file = path.join(home, 'config.yaml')
  const check = async (expected: string): Promise<void> => {
    const ran = await run(['config', 'check'], { home })
    t.is(ran.code, 78)
    t.is(ran.stdout, `fault  ${file}${expected}\n`)
    const { faults } = JSON.parse((await run(['config', 'check', '--json'], { home })).stdout) as {
      faults: { where: string }[]
    }
    t.is(faults.length, 1)
  }
  await mkdir(file)
  await check(': cannot be read: it is a directory')
  await rm(file, { recursive: true })
  await writeFile(file, ' '.repeat(262_145))
  await check(': larger than 262144 bytes')
  await rm(file)
  spawnSync('mkfifo', [file])
  await check(': cannot be read: it is no regular file')
})
