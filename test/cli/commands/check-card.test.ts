import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { MAX_REMOTE_CARD_BYTES } from '../../../src/adapters/a2a/remote/remote-card.js'
import { cardWith, oldCardWith } from '../../support/a2a/foreign-cards.js'
import { tempDir } from '../../support/tmp.js'
import { type Ran, run } from '../command-line.js'

interface Report {
  readonly schema: string
  readonly ok: boolean
  readonly isImportable: boolean
  readonly name: string | null
  readonly skills: number
  readonly versions: readonly string[]
  readonly faults: readonly { path: string; wrong: string; right: string; stopsImport: boolean }[]
  readonly warnings: readonly { path: string; wrong: string; right: string }[]
}

/** A server on loopback, and a home whose config lets A2A reach it. */
async function scene(t: Assert, answer: http.RequestListener, more = ''): Promise<{ url: string; home: string }> {
  const server = http.createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  t.teardown(() => server.closeAllConnections(), { order: -1 })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const home = await tempDir(t)
  await fs.writeFile(
    path.join(home, 'config.yaml'),
    `a2a:\n  allowPrivate: [127.0.0.1]\n${more.replaceAll('URL', url)}`
  )
  return { url, home }
}

async function report(target: string, options: Parameters<typeof run>[1] = {}): Promise<Report & Pick<Ran, 'code'>> {
  const ran = await run(['agents', 'check', target, '--json'], options)
  return { ...(JSON.parse(ran.stdout) as Report), code: ran.code }
}

async function cardFile(t: Assert, text: string, name = 'card.json'): Promise<string> {
  const file = path.join(await tempDir(t), name)
  await fs.writeFile(file, text)
  return file
}

/** Eight faults, of which three stop an import. */
const BAD = cardWith({
  name: undefined,
  version: 1,
  skills: [{ id: 'a', name: 'A', description: 'd', tags: 'none' }],
  defaultInputModes: undefined,
  documentationUrl: 'docs',
  provider: { organization: 'Example' },
  securityRequirements: [{ schemes: { key: {} } }],
  signatures: 'none'
})

test('agents check prints every fault of a card with its path, the found value and the expected one, from a file and from a URL', async (t: Assert) => {
  const file = await cardFile(t, JSON.stringify(BAD))
  const { url, home } = await scene(t, (_, response) => response.end(JSON.stringify(BAD)))
  const lines = [
    'fault  /defaultInputModes: is missing; must be a list',
    'fault  /documentationUrl: is "docs"; must be an absolute http or https URL, without user and password',
    'fault  /name: is missing; must be a text  (stops an import)',
    'fault  /provider/url: is missing; must be a text',
    'fault  /securityRequirements/0/schemes/key: is no scheme of the card; must be a name in /securitySchemes',
    'fault  /signatures: is "none"; must be a list',
    'fault  /skills/0/tags: is "none"; must be a list  (stops an import)',
    'fault  /version: is 1; must be a text  (stops an import)',
    '8 faults, 0 warnings: an import refuses this card'
  ]
  for (const target of [file, `${url}/card`]) {
    const ran = await run(['agents', 'check', target], { home })
    t.alike([ran.stdout.trimEnd().split('\n'), ran.stderr, ran.code], [lines, '', 78])
    const { schema, ok, isImportable, faults, versions, skills, code } = await report(target, { home })
    t.alike([schema, ok, isImportable, versions, skills, code], ['a2a-node/card-check@1', false, false, ['1.0'], 1, 78])
    t.alike(faults[0], { path: '/defaultInputModes', wrong: 'is missing', right: 'must be a list', stopsImport: false })
    t.is(faults.length, 8)
  }
})

test('a right card of either version passes, with warnings for oddities, and the well-known path completes an origin', async (t: Assert) => {
  const { url, home } = await scene(t, ({ url: asked = '' }, response) => {
    const card =
      asked === '/old'
        ? oldCardWith({ url: 'http://0.0.0.0:1/rpc', iconUrl: null })
        : cardWith({ supportedInterfaces: at(`${url}/a`) })
    response.statusCode = ['/old', '/.well-known/agent-card.json'].includes(asked) ? 200 : 404
    response.end(JSON.stringify(card))
  })
  const ran = await run(['agents', 'check', url], { home })
  t.alike([ran.stdout, ran.code], ['ok  card "x": A2A 1.0, 1 skill\n', 0])
  const old = await report(`${url}/old`, { home })
  t.alike([old.ok, old.isImportable, old.versions, old.code], [true, true, ['0.3'], 0])
  t.alike(
    old.warnings.map(({ path: place }) => place),
    ['', '/url']
  )
  t.ok(old.warnings[1]?.wrong.includes(`read as "${url}/rpc"`), old.warnings[1]?.wrong)
})

function at(url: string): readonly object[] {
  return [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
}

test('a card that cannot be fetched or read is one fault with its reason, by the limits and the address guard of imports', async (t: Assert) => {
  const { url, home } = await scene(t, ({ url: asked }, response) => {
    if (asked === '/404') response.writeHead(404).end()
    else if (asked === '/moved') response.writeHead(302, { location: '/card' }).end()
    else if (asked === '/huge')
      response.end(JSON.stringify(cardWith({ description: 'x'.repeat(MAX_REMOTE_CARD_BYTES) })))
    else if (asked === '/html') response.end('<html>')
    else if (asked === '/deep') response.end(`{"a":${'['.repeat(40)}${']'.repeat(40)}}`)
    else if (asked === '/list') response.end('[]')
    else if (asked === '/null') {
      const additionalInterfaces = [{ url: 'https://a.example/', transport: 'JSONRPC' }]
      response.end(
        JSON.stringify(oldCardWith({ url: 'http://10.0.0.1/', preferredTransport: null, additionalInterfaces }))
      )
    } else
      response.end(
        JSON.stringify(
          cardWith({ supportedInterfaces: at(asked === '/meta' ? 'http://169.254.169.254/' : 'http://10.0.0.1/') })
        )
      )
  })
  const [huge, html, empty] = [
    await cardFile(t, JSON.stringify(cardWith({ description: 'x'.repeat(MAX_REMOTE_CARD_BYTES) }))),
    await cardFile(t, '<html>'),
    await cardFile(t, '')
  ]
  for (const [target, reason] of [
    [`${url}/404`, /^ cannot be fetched: its card is not there \(HTTP 404\)/],
    [`${url}/moved`, /^ cannot be fetched: it answers with a redirect \(HTTP 302\)/],
    [`${url}/huge`, /^ cannot be fetched: its answer has more than 262144 bytes/],
    [`${url}/html`, /^ is not to be read: not JSON/],
    [`${url}/deep`, /^ is not to be read: .*nested/],
    [`${url}/list`, /^ is no JSON object/],
    [`${url}/meta`, /^\/supportedInterfaces\/0\/url is refused: .*169\.254\.169\.254/],
    [`${url}/inside`, /^\/supportedInterfaces\/0\/url is refused: .*10\.0\.0\.1 is not public.*a2a\.allowPrivate/],
    [`${url}/null`, /^\/url is refused: .*10\.0\.0\.1 is not public/],
    ['http://127.0.0.1:1/', /^ cannot be fetched: .*port 1 is not one of the web/],
    ['http://10.0.0.1/', /^ cannot be fetched: .*10\.0\.0\.1 is not public.*a2a\.allowPrivate/],
    ['ftp://127.0.0.1/card', /^ cannot be fetched: .*not an http or https address/],
    [`http://127.0.0.1:${await closedPort()}/`, /^ cannot be fetched: .*ECONNREFUSED/],
    [huge, /^ cannot be read: it has \d+ bytes/],
    [html, /^ is not to be read: not JSON/],
    [empty, /^ is not to be read: not JSON/],
    ['/no/such/card.json', /^ cannot be read: there is no such file/]
  ] as const) {
    const { faults, ok, isImportable, code } = await report(target, { home })
    t.alike([faults.length, ok, isImportable, faults[0]?.stopsImport, code], [1, false, false, true, 78], target)
    t.ok(reason.test(`${faults[0]?.path ?? ''} ${faults[0]?.wrong ?? ''}`), `${target}: ${faults[0]?.wrong ?? ''}`)
  }
})

/** A port that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = http.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('an address of the config is checked with the secret and the url that the config gives it', async (t: Assert) => {
  const more =
    '  agents:\n    far: { card: "URL/card", url: "http://10.9.9.9/a2a", auth: { bearer: "env:FAR_SECRET" } }\n'
  const asked: (string | undefined)[] = []
  const { url, home } = await scene(
    t,
    ({ headers }, response) => {
      asked.push(headers.authorization)
      response.statusCode = headers.authorization === 'Bearer s3cret' ? 200 : 401
      response.end(JSON.stringify(cardWith({ supportedInterfaces: at(`${url}/a`) })))
    },
    more
  )
  const withSecret = await report(`${url}/card`, { home, env: { FAR_SECRET: 's3cret' } })
  t.ok(withSecret.faults[0]?.wrong.includes('the address in the config is refused'), withSecret.faults[0]?.wrong)
  t.alike(asked, ['Bearer s3cret'])
  const without = await report(`${url}/card`, { home })
  t.ok(without.faults[0]?.wrong.includes('FAR_SECRET'), without.faults[0]?.wrong)
  const other = await report(`${url}/other`, { home, env: { FAR_SECRET: 's3cret' } })
  t.ok(other.faults[0]?.wrong.includes('HTTP 401'), other.faults[0]?.wrong)
  t.alike(asked, ['Bearer s3cret', undefined], 'another address gets no secret')
})

test('the name or the first character decides whether a file is checked as a card or as an agent file', async (t: Assert) => {
  const text = JSON.stringify(cardWith({}))
  for (const [content, name] of [
    [text, 'agent-card.JSON'],
    [`\ufeff\n ${text}`, 'card.txt'],
    [text, 'card']
  ] as const)
    t.is((await report(await cardFile(t, content, name))).schema, 'a2a-node/card-check@1', name)
  for (const [content, name] of [
    ['---\nname: x\n---\n', 'x.md'],
    ['', 'y.md']
  ] as const)
    t.is((await report(await cardFile(t, content, name))).schema, 'a2a-node/agent-check@1', name)
  const mesh = await run(['agents', 'check', 'a2a-mesh://phone/agents/text'], { home: await tempDir(t) })
  t.alike([mesh.code, mesh.stderr.includes('[USAGE]')], [2, true])
})
