import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import YAML from 'yaml'

interface Running {
  readonly execPath: string
  readonly version: string
  readonly env: Readonly<Record<string, string>>
}

/** What `scripts/conformance/runner.mjs` offers. Scripts are not compiled; tests run in the root of the repository. */
interface Runner {
  readonly RUNS: readonly { readonly version: string; readonly args: readonly string[] }[]
  nodeForRunner(
    running: Running,
    versionOf?: (program: string) => string
  ): { readonly node?: string; readonly skipped?: string }
}

async function runner(): Promise<Runner> {
  return (await import(pathToFileURL(path.resolve('scripts/conformance/runner.mjs')).href)) as Runner
}

test('the official runner runs with Node 22, this one or one that is named; without it the script says so', async (t) => {
  const { nodeForRunner, RUNS } = await runner()
  const env = { A2A_CONFORMANCE_NODE: '/other/node' }
  const asked: string[] = []
  const versionOf = (version: string) => (program: string) => {
    asked.push(program)
    return version
  }
  t.alike(nodeForRunner({ execPath: '/this/node', version: '22.0.0', env }, versionOf('22.1.0')), {
    node: '/this/node'
  })
  t.alike(asked, [])
  t.alike(nodeForRunner({ execPath: '/this/node', version: '20.20.2', env }, versionOf('24.1.0')), {
    node: '/other/node'
  })
  t.alike(asked, ['/other/node'])
  for (const nothing of [{}, { A2A_CONFORMANCE_NODE: '' }]) {
    const { node, skipped = '' } = nodeForRunner(
      { execPath: '/this/node', version: '20.20.2', env: nothing },
      versionOf('24.1.0')
    )
    t.is(node, undefined)
    t.ok(skipped.startsWith('the official runner needs Node 22, this is 20.20.2'))
  }
  for (const wrong of ['20.1.0', '']) {
    await t.exception(
      () => nodeForRunner({ execPath: '/this/node', version: '20.20.2', env }, versionOf(wrong)),
      /A2A_CONFORMANCE_NODE/
    )
  }
  t.ok(
    RUNS.every(({ version }) => /^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version)),
    'exact versions'
  )
})

test('every failure that the official runner may find is named once, with its reason', (t) => {
  const text = fs.readFileSync('test/conformance/expected-failures.yml', 'utf8')
  const { server } = YAML.parse(text) as { readonly server: readonly string[] }
  t.ok(server.every((one) => /^[a-z0-9-]+(:[a-z0-9-]+)?$/.test(one)))
  t.is(new Set(server).size, server.length)
  const [, ...groups] = text.split(/^server:\n|\n\n/m)
  t.is(groups.length, 1)
  for (const group of groups) t.ok(group.trimStart().startsWith('# '), group)
})
