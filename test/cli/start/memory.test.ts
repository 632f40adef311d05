import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { commandContext } from '../../../src/cli/context.js'
import type { Options } from '../../../src/cli/options.js'
import { memoryNotes, toRemember, withForgetting, withTypedFlags } from '../../../src/cli/start/memory.js'
import { startFlags, type StartSettings, startSettings } from '../../../src/cli/start-settings.js'
import { Output } from '../../../src/cli/terminal/output.js'
import { nodeRecord } from '../../../src/compose/node-record.js'
import { rememberFlags } from '../../../src/compose/open-home.js'
import { startFlagsText } from '../../../src/config/start-flags.js'
import type { StartFlagTexts } from '../../../src/config/start-options.js'
import { NodeError } from '../../../src/kit/errors.js'
import { failsWith } from '../../support/fails.js'
import { tempDir } from '../../support/tmp.js'

const LAST = {
  '--network': ['private'],
  '--bootstrap': ['a:1'],
  '--serve-bootstrap': ['127.0.0.1:2'],
  '--http': ['9001']
}

interface Scene {
  readonly last?: StartFlagTexts
  readonly env?: Readonly<Record<string, string>>
  readonly config?: string
}

function contextOf(home: string, env: Readonly<Record<string, string>> = {}) {
  const sink = { write: () => true }
  const output = new Output({ json: false, color: 'never', out: sink, err: sink, env: {} })
  return commandContext({ output, home, env })
}

/** The settings and lines of a start with these options after one with the flags `last`. */
async function next(t: Assert, options: Options, { last = LAST, env = {}, config }: Scene = {}) {
  const home = await tempDir(t)
  if (Object.keys(last).length > 0) await writeFile(path.join(home, 'start.flags'), startFlagsText(last))
  if (config !== undefined) await writeFile(path.join(home, 'config.yaml'), config)
  const flags = await startFlags(options)
  const settings = await startSettings(contextOf(home, env), options)
  return { home, settings, flags, notes: memoryNotes(settings, flags) }
}

test('a start without flags uses those of the last start, and says so', async (t: Assert) => {
  const { settings, notes } = await next(t, {})
  const { network, http } = settings.config
  t.alike(
    [network.kind, network.bootstrap, network.serveBootstrap, http.listen],
    ['private', ['a:1'], '127.0.0.1:2', '9001']
  )
  t.is(settings.origins.get('http.listen')?.source, 'remembered')
  t.alike(notes, [
    'with flags of the last start: --network private --bootstrap a:1 --serve-bootstrap 127.0.0.1:2 --http 9001'
  ])
})

test('a start with another value uses and remembers it, and says so in one line', async (t: Assert) => {
  const last = { '--http': ['9001'], '--agents': ['/a'] }
  const { settings, flags, notes } = await next(t, { http: '9002', agents: ['/b', '/c'] }, { last })
  t.is(settings.config.http.listen, '9002')
  t.alike(settings.agentDirs, ['/b', '/c'])
  t.alike(toRemember(settings, flags), { '--http': ['9002'], '--agents': ['/b', '/c'] })
  t.alike(notes, ['other flags than at the last start: --agents /b --agents /c (was /a), --http 9002 (was 9001)'])
  const same = await next(t, { http: '9001', agents: ['/a'] }, { last })
  t.alike(same.notes, [], 'equal flags are no change')
})

test('--no-<flag> forgets each flag that is remembered, and says when there is none', async (t: Assert) => {
  const last: StartFlagTexts = { ...LAST, '--agents': ['/a'] }
  for (const [key, flag] of Object.entries({
    bootstrap: '--bootstrap',
    serveBootstrap: '--serve-bootstrap',
    agents: '--agents',
    http: '--http'
  })) {
    const { settings, flags, notes } = await next(t, { [key]: false }, { last })
    t.absent(flag in (toRemember(settings, flags) ?? {}), flag)
    t.ok(
      notes.includes(`other flags than at the last start: ${flag} is forgotten (was ${last[flag]?.join(' ')})`),
      notes.join('\n')
    )
  }
  const { notes } = await next(t, { http: false }, { last: {} })
  t.alike(notes, ['--no-http forgets nothing: no --http is remembered'])
})

test('a forgotten flag does not come back from the record of the mesh', async (t: Assert) => {
  const stored = { name: 'a', network: 'private', bootstrap: ['a:1'], localPort: 1, epoch: 2 } as const
  const recordOf = ({ config }: StartSettings) => nodeRecord({ config, name: null, code: null, stored })
  t.alike(recordOf((await next(t, { bootstrap: false })).settings).bootstrap, [])
  t.alike(
    recordOf((await next(t, { bootstrap: false }, { env: { A2A_NODE_NETWORK_BOOTSTRAP: 'e:5' } })).settings).bootstrap,
    ['e:5']
  )
  t.is(recordOf((await next(t, { network: false })).settings).network, 'public')
  const { settings } = await next(t, { bootstrap: false }, { last: {} })
  t.alike(recordOf(settings).bootstrap, ['a:1'], 'a list that an invite gave is not forgotten')
})

test('bootstrap nodes are forgotten with the private network that they were for', async (t: Assert) => {
  for (const network of ['local', 'public', false]) {
    const { settings, flags } = await next(t, { network })
    const { '--bootstrap': list, '--serve-bootstrap': served, '--http': http } = toRemember(settings, flags) ?? {}
    t.alike([list, served, http], [undefined, undefined, ['9001']], String(network))
  }
  const { settings, flags } = await next(t, { network: 'private' })
  t.alike(toRemember(settings, flags), LAST)
})

test('a remembered flag goes before environment and file, and says which other value it hides', async (t: Assert) => {
  const last = { '--http': ['9001'] }
  const config = 'http:\n  listen: 9003\n'
  const inFile = await next(t, {}, { last, config })
  t.is(inFile.settings.config.http.listen, '9001')
  const place = path.join(inFile.home, 'config.yaml')
  t.ok(
    inFile.notes.includes(`--http of the last start goes before http.listen of ${place}:2; --no-http forgets it`),
    inFile.notes.join('\n')
  )
  const inBoth = await next(t, {}, { last, config, env: { A2A_NODE_HTTP_LISTEN: '9004' } })
  t.ok(
    inBoth.notes.some((line) => line.includes('goes before http.listen of A2A_NODE_HTTP_LISTEN')),
    inBoth.notes.join('\n')
  )
  t.is((await next(t, {}, { last, config: 'http:\n  listen: 9001\n' })).notes.length, 1, 'an equal value is not hidden')
  t.is((await next(t, { http: false }, { last, config })).settings.config.http.listen, '9003')
})

test('a joining node leaves the network to its invite, and keeps no code', async (t: Assert) => {
  const { settings, flags } = await next(t, { network: 'local', join: 'secret-code', http: '0' }, { last: {} })
  t.alike(toRemember(settings, flags), { '--http': ['0'] })
})

test('more directories than can be remembered are USAGE', async (t: Assert) => {
  const agents = Array.from({ length: 65 }, (_, i) => `/${i}`)
  await failsWith(t, 'USAGE', () => next(t, { agents }, { last: {} }))
})

test('a port in use that a flag of the last start has is an error with the way to forget it', async (t: Assert) => {
  const { settings } = await next(t, {})
  const inUse = (port: number): NodeError =>
    new NodeError('PORT_IN_USE', `port ${port} is in use by another program`, { next: ['ss'] })
  const nextOf = (error: unknown, of: Pick<StartSettings, 'texts' | 'typed'> = settings): readonly string[] =>
    (withForgetting(error, of) as NodeError).next
  t.alike(nextOf(inUse(9001)), ['ss', 'a2a-node start --no-http'])
  t.alike(nextOf(inUse(2)), ['ss', 'a2a-node start --no-serve-bootstrap'])
  t.alike(nextOf(inUse(900)), ['ss'])
  t.alike(
    nextOf(inUse(9001), { ...settings, typed: { '--http': ['9001'] } }),
    ['ss'],
    'a typed flag is not of the last start'
  )
})

test('an address of another machine in a restored home is an error with the way to forget its flag', async (t: Assert) => {
  const last = { '--http': ['0'], '--serve-bootstrap': ['10.9.2.3:9001'] }
  const { settings } = await next(t, {}, { last: { '--network': ['private'], ...last } })
  const nextOf = (message: string): readonly string[] =>
    (withForgetting(new NodeError('CONFIG_INVALID', message, { next: ['ss'] }), settings) as NodeError).next
  t.alike(nextOf('10.9.2.3 is no address of this machine'), ['ss', 'a2a-node start --no-serve-bootstrap'])
  t.alike(nextOf('cannot serve on 10.9.0.3:70: no address'), ['ss'], 'a free port and another address are not named')
})

test('a damaged file of flags stays until a start types or forgets a flag', async (t: Assert) => {
  const home = await tempDir(t)
  const damaged: Readonly<Record<string, string>> = {
    text: '{"version":1,"flags":{"--htt',
    newer: '{"version":2,"flags":{"--http":["9001"]}}',
    shapeless: '{"version":"2","flags":{"--http":["9001"]}}',
    value: startFlagsText({ '--http': ['70000'], '--agents': ['/a'] })
  }
  const deps = { telemetry: { log: () => {} }, writes: { report: () => t.fail('no write') } }
  for (const [name, text] of Object.entries(damaged)) {
    await writeFile(path.join(home, 'start.flags'), text)
    const kept = async (options: Options) => {
      const [flags, settings] = [await startFlags(options), await startSettings(contextOf(home), options)]
      return { texts: toRemember(settings, flags), notes: memoryNotes(settings, flags) }
    }
    t.is((await kept({})).texts, null, name)
    t.is((await kept({ http: '9001' })).texts?.['--http']?.[0], '9001', name)
    const { texts, notes } = await kept({ http: false })
    t.absent('--http' in (texts ?? { '--http': [] }), name)
    t.absent(
      notes.some((line) => line.includes('forgets nothing')),
      name
    )
    await rememberFlags(path.join(home, 'start.flags'), { texts: null, faults: ['x'] }, deps)
    t.is(await readFile(path.join(home, 'start.flags'), 'utf8'), text)
  }
})

test('next steps of a failed start keep its typed and its forgotten flags', (t) => {
  const steps = [
    'a2a-node start --no-serve-bootstrap --network local',
    'a2a-node start   # again',
    'a2a-node start --websocket 7   # on another machine',
    'a2a-node stop'
  ]
  const plain = { name: 'box', join: null, joinsOnce: false, isDetached: false }
  const flags = { ...plain, typed: { '--network': ['private'] }, forgotten: ['--http'] }
  const error = withTypedFlags(new NodeError('USAGE', 'no', { next: steps }), flags) as NodeError
  t.alike(error.next, [
    'a2a-node start --no-serve-bootstrap --network local --name box --no-http',
    'a2a-node start --name box --network private --no-http   # again',
    'a2a-node start --websocket 7   # on another machine',
    'a2a-node stop'
  ])
})

test('next steps of a failed join and of a failed start in the background join and detach as well', (t) => {
  const plain = { name: null, join: 'code', joinsOnce: false, isDetached: true, typed: {}, forgotten: [] }
  const steps = ['a2a-node start --http 0', 'a2a-node start --join - --leave', 'a2a-node start --help']
  const nextOf = (flags: typeof plain): readonly string[] =>
    (withTypedFlags(new NodeError('PORT_IN_USE', 'no', { next: steps }), flags) as NodeError).next
  t.alike(nextOf(plain), [
    'a2a-node start --http 0 --join - --detach',
    'a2a-node start --join - --leave --detach',
    'a2a-node start --help'
  ])
  // The environment of the next command has the code.
  t.alike(nextOf({ ...plain, joinsOnce: true, isDetached: false }), steps)
})
