import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { REPOSITORY } from './command-line.js'

/** Packages and files that importing one file loads at once; lazy imports are not followed. */
function loadedBy(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  for (const [, specifier = ''] of text.matchAll(/^(?:import|export)\s(?:[\w*$\s{},]+?\sfrom\s+)?['"]([^'"]+)['"]/gm)) {
    if (specifier.startsWith('.')) loadedBy(path.resolve(path.dirname(file), specifier), seen)
    else if (!specifier.startsWith('node:')) seen.add(specifier)
  }
  // The bundle loads packages in CommonJS so.
  for (const [, name = ''] of text.matchAll(/^const [\w$]+ = createRequire\(import\.meta\.url\)\("([^"]+)"\)/gm))
    seen.add(name)
  return seen
}

/** Packages that importing compiled files loads at once. */
function packagesOf(...files: string[]): string[] {
  return packagesIn('build/src', files)
}

function packagesIn(place: string, files: readonly string[]): string[] {
  const all = files.flatMap((file) => [...loadedBy(path.join(REPOSITORY, place, file))])
  return [...new Set(all.filter((one) => !path.isAbsolute(one)))].sort()
}

test('the bundled program loads no more at once than its sources', (t: Assert) => {
  for (const [entry, source] of [
    ['main', 'cli/main'],
    ['mcp-serve', 'cli/mcp/main'],
    ['client', 'client'],
    ['agent', 'agent'],
    ['index', 'index'],
    ['guard-main', 'adapters/agents/process/guard-main']
  ] as const)
    t.alike(packagesIn('dist', [`${entry}.js`]), packagesOf(`${source}.js`), entry)
})

test('the bundled program is ASCII, so that its source takes one byte a character in memory', (t: Assert) => {
  const files = readdirSync(path.join(REPOSITORY, 'dist')).filter((name) => name.endsWith('.js'))
  t.ok(files.includes('main.js'))
  for (const name of files) t.absent(/[^\0-\x7f]/.test(readFileSync(path.join(REPOSITORY, 'dist', name), 'utf8')), name)
})

test('before a command runs nothing is loaded but the parser', (t: Assert) => {
  t.alike(packagesOf('cli/main.js'), ['commander'])
})

test('a client command loads no schema, YAML or peer-to-peer package', (t: Assert) => {
  for (const name of ['peers', 'status', 'swarm-run', 'send', 'call', 'tasks', 'ping', 'invite', 'agents', 'stop']) {
    const packages = packagesOf('cli/main.js', `cli/commands/${name}.js`)
    t.ok(
      packages.every((one) => ['b4a', 'commander', 'z32'].includes(one)),
      `${name}: ${packages.join(', ')}`
    )
  }
})

test('the public client loads none either, but Yjs for its provider', (t: Assert) => {
  t.alike(packagesOf('client.js'), ['b4a', 'y-protocols/awareness', 'yjs', 'z32'])
})

test('a node without an agent of a language model loads nothing for one', (t: Assert) => {
  const packages = packagesOf('compose/compose.js')
  t.ok(packages.includes('hyperswarm'), packages.join(', '))
  t.alike(
    packages.filter((one) => /^(?:ai$|@ai-sdk|@opentelemetry)/.test(one)),
    []
  )
  t.ok(packagesOf('adapters/agents/llm/llm-run.js').includes('ai'), 'the modules to load')
})

test('a node without an MCP client or a denied pattern loads neither the schemas of MCP nor RE2', (t: Assert) => {
  const packages = packagesOf('compose/compose.js', 'compose/open-tasks.js', 'compose/open-gateway.js')
  t.alike(
    packages.filter((one) => /^(?:@modelcontextprotocol|re2js)/.test(one)),
    []
  )
  t.ok(packagesOf('adapters/mcp/server/service.js').includes('@modelcontextprotocol/server'), 'the modules to load')
})

test('checking a card loads neither the peer-to-peer network nor a client of agents', (t: Assert) => {
  const packages = packagesOf('compose/check-card.js')
  t.ok(packages.includes('zod'), packages.join(', '))
  t.alike(
    packages.filter((one) => /hyper|corestore|autobase|protomux|rocksdb|udx|sodium|@a2a-js|yjs|blind/.test(one)),
    []
  )
})
