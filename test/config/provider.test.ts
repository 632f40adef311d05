import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ConfigFault } from '../../src/config/candidate.js'
import { loadConfig } from '../../src/config/load.js'
import { AGENT_FORMAT, fileReason } from '../../src/adapters/agents/files/agent-file-schema.js'
import { readProviders } from '../../src/domain/card/provider.js'
import { NodeError } from '../../src/kit/errors.js'
import { tempDir } from '../support/tmp.js'

const GOOD = [
  { organization: 'Example', url: 'https://example.org' },
  { organization: "Ünïted 'Köln' & Söhne, 東京", url: 'http://127.0.0.1:8080/about?x=1#top' },
  { organization: 'x', url: 'HTTPS://[2001:db8::1]/' },
  { organization: 'x'.repeat(128), url: `https://example.org/${'a'.repeat(492)}` }
]

/** Wrong ones, each with the member at fault and words of the reason. */
const WRONG: readonly (readonly [value: unknown, member: string, reason: RegExp])[] = [
  [{ url: 'https://example.org' }, 'organization', /missing/],
  [{ organization: 'Example' }, 'url', /missing/],
  [{ organization: 7, url: 'https://example.org' }, 'organization', /must be text/],
  [{ organization: '', url: 'https://example.org' }, 'organization', /1 to 128 printable/],
  [{ organization: '  ', url: 'https://example.org' }, 'organization', /letter or a digit/],
  [{ organization: 'a\u001b[2Jb', url: 'https://example.org' }, 'organization', /printable/],
  [{ organization: 'a\nb', url: 'https://example.org' }, 'organization', /one line/],
  [{ organization: '\u202eabc', url: 'https://example.org' }, 'organization', /printable/],
  [{ organization: 'x'.repeat(129), url: 'https://example.org' }, 'organization', /1 to 128/],
  ...[
    '',
    'example.org',
    '/about',
    '//example.org',
    'ftp://example.org',
    'javascript:alert(1)',
    'https://',
    'https://.../',
    'https://user:password@example.org',
    'https://example.org:99999',
    'https://exa mple.org',
    'https://example.org/\u001b[2J',
    'https://example.org\\@other.example',
    `https://example.org/${'a'.repeat(493)}`
  ].map((url) => [{ organization: 'Example', url }, 'url', /absolute http or https URL/] as const),
  [{ organization: 'Example', url: 'https://example.org', logo: 'x' }, 'logo', /no such key|unknown|nrecognized/]
]

async function load(t: Assert, value: unknown): Promise<Awaited<ReturnType<typeof loadConfig>>> {
  const file = path.join(await tempDir(t), 'config.yaml')
  writeFileSync(file, JSON.stringify({ a2a: { provider: value } }))
  return await loadConfig({ file, env: {} })
}

async function faultsOf(t: Assert, value: unknown): Promise<string[]> {
  const error: unknown = await load(t, value).then(
    () => null,
    (thrown: unknown) => thrown
  )
  const found = error instanceof NodeError ? (error.data as { faults: readonly ConfigFault[] }).faults : []
  return found.map(({ key, reason }) => `${key}: ${reason}`)
}

test('a provider has an organization and an absolute URL, in the config, in an agent file and from a peer alike', async (t: Assert) => {
  const fileSchema = AGENT_FORMAT.schema.shape.a2a.shape.provider
  for (const provider of GOOD) {
    t.alike((await load(t, provider)).config.a2a.provider, provider)
    t.alike(fileSchema.parse(provider), provider)
    t.alike(readProviders([{ id: 'a', revision: 1, provider }]), [{ id: 'a', revision: 1, provider }])
    t.ok(URL.canParse(provider.url))
  }
  t.is((await load(t, null)).config.a2a.provider, null)
})

test('a wrong provider is refused everywhere, by the same rule and with the member at fault', async (t: Assert) => {
  const fileSchema = AGENT_FORMAT.schema.shape.a2a.shape.provider
  for (const [value, member, reason] of WRONG) {
    const faults = await faultsOf(t, value)
    t.is(faults.length, 1, JSON.stringify(value))
    const [fault = ''] = faults
    t.ok(fault.startsWith(`a2a.provider.${member}: `) && reason.test(fault), fault)
    const { error } = fileSchema.safeParse(value, { error: fileReason })
    t.is(error?.issues.length, 1, JSON.stringify(value))
    if (member !== 'logo') t.alike(readProviders([{ id: 'a', revision: 1, provider: value }]), [])
  }
  for (const value of ['Example', ['Example'], 7])
    t.ok((await faultsOf(t, value))[0]?.includes('must be a mapping of organization and url'))
})
